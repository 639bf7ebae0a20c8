package handoff

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// maxHeard is how many words of a person a hand-off remembers by their keys.
const maxHeard = 32

type onceKey struct{}

// Once makes what is done with ctx to a hand-off happen once under a key,
// whatever is killed in between: the key is written together with what it did.
// A word that is heard again gets the hand-off as it is by then.
func Once(ctx context.Context, key string) context.Context {
	sum := sha256.Sum256([]byte(key))
	return context.WithValue(ctx, onceKey{}, hex.EncodeToString(sum[:12]))
}

// heard reports whether the word of ctx has had its effect on a hand-off.
func (r Record) heard(ctx context.Context) bool {
	key, ok := ctx.Value(onceKey{}).(string)
	return ok && slices.Contains(r.Book.Heard, key)
}

// hear notes the word of ctx.
func (r Record) hear(ctx context.Context) Record {
	if key, ok := ctx.Value(onceKey{}).(string); ok {
		all := append(slices.Clone(r.Book.Heard), key)
		r.Book.Heard = all[max(0, len(all)-maxHeard):]
	}
	return r
}
