// Package owners knows which people may speak for tapin's owner in a chat, and
// how one becomes such a person. It owns owners.json: who is paired, who waits
// to be let in, and the codes that are out. It must never let anybody in on a
// code alone once there is an owner who can be asked, nor keep a code in the
// clear.
package owners

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
)

const (
	file = "owners.json"
	// codeFor is how long a code can be used.
	codeFor = 10 * time.Minute
	// waitFor is how long somebody waits for an owner's word.
	waitFor = 24 * time.Hour

	codeLetters = "abcdefghjkmnpqrstvwxyz23456789"
	codeLength  = 12 // 58 bits
	maxCodes    = 8
	maxWaiting  = 8
	maxName     = 64
)

// Owner is somebody who may speak for the owner.
type Owner struct {
	ID       int64     `json:"id"` // in Telegram
	Name     string    `json:"name,omitempty"`
	PairedAt time.Time `json:"paired_at,omitzero"`
	Fixed    bool      `json:"fixed,omitempty"` // by configuration
}

// Waiting is somebody who had a code and waits for an owner's word.
type Waiting struct {
	ID   int64     `json:"id"`
	Name string    `json:"name,omitempty"`
	At   time.Time `json:"at"`
}

// Outcome is what became of a code.
type Outcome string

// The outcomes.
const (
	Paired  Outcome = "paired"
	Waits   Outcome = "waiting" // for an owner's word
	Already Outcome = "already" // an owner before
)

type code struct {
	Digest string    `json:"digest"`
	Until  time.Time `json:"until"`
}

// record is owners.json.
type record struct {
	Version int          `json:"version"`
	Owners  []Owner      `json:"owners"`
	Waiting []Waiting    `json:"waiting,omitempty"`
	Codes   []code       `json:"codes,omitempty"`
	Outbox  event.Outbox `json:"outbox,omitempty"`
}

func (r record) clone() record {
	r.Owners, r.Waiting, r.Codes, r.Outbox = slices.Clone(r.Owners), slices.Clone(r.Waiting), slices.Clone(r.Codes), slices.Clone(r.Outbox)
	return r
}

// Room has the owners of a home. It is safe for concurrent use.
type Room struct {
	pump  *event.Pump
	fixed []int64

	mu   sync.Mutex
	rec  record // nobody is an owner by it while the file cannot be read
	kept *store.Truth[record]
}

// New reads who is an owner. Fixed ones are so by configuration. While the file
// cannot be read they alone are, and nobody becomes one: the first with a code
// would be taken for the first there ever was.
func New(home *store.Home, pump *event.Pump, fixed []int64) *Room {
	r := &Room{pump: pump, fixed: slices.Clone(fixed)}
	r.kept = store.OpenTruth(home, file, &r.rec, func(rec *record) error {
		if rec.Version < 1 {
			return errors.New("it has no version")
		}
		return nil
	})
	return r
}

// Ready is nil if it is known who is an owner, and else says why not.
func (r *Room) Ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kept.Ready()
}

// Recover tells what a kill kept from being told.
func (r *Room) Recover(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deliver(ctx)
}

// Invite makes a code for one person. It is told this once.
func (r *Room) Invite(ctx context.Context) (secret.Text, time.Time, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.kept.Ready(); err != nil {
		return secret.Text{}, time.Time{}, err
	}
	now := time.Now().UTC()
	plain := newCode()
	next := r.rec.clone()
	next.Codes = slices.DeleteFunc(next.Codes, func(c code) bool { return !now.Before(c.Until) })
	if len(next.Codes) >= maxCodes {
		next.Codes = next.Codes[1:]
	}
	until := now.Add(codeFor)
	next.Codes = append(next.Codes, code{digestOf(plain), until})
	return plain, until, r.write(ctx, next, "", nil)
}

// Claim takes a code from somebody in the chat. The first one who comes is an
// owner; later ones wait for an owner's word. A code counts once.
func (r *Room) Claim(ctx context.Context, given secret.Text, id int64, name string) (Outcome, error) {
	const op = "pair"
	if id <= 0 {
		return "", fault.New(fault.InvalidRequest, op, "only a person can be an owner")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.kept.Ready(); err != nil {
		return "", err
	}
	if r.isOwner(id) {
		return Already, nil
	}
	if slices.ContainsFunc(r.rec.Waiting, func(w Waiting) bool { return w.ID == id }) {
		return Waits, nil // the same message, delivered again
	}
	now := time.Now().UTC()
	digest := digestOf(secret.New(strings.ToLower(given.Reveal())))
	found := slices.IndexFunc(r.rec.Codes, func(c code) bool {
		return subtle.ConstantTimeCompare([]byte(c.Digest), []byte(digest)) == 1 && now.Before(c.Until)
	})
	if found < 0 {
		return "", fault.New(fault.NotFound, op, "that code is wrong, used or too old").WithHint("Run tapin pair for a new one.")
	}
	next := r.rec.clone()
	next.Codes = slices.Delete(next.Codes, found, found+1)
	name = cut(name)
	if len(next.Owners)+len(r.fixed) == 0 {
		next.Owners = append(next.Owners, Owner{ID: id, Name: name, PairedAt: now})
		return Paired, r.write(ctx, next, event.OwnerPaired, &event.OwnerNews{ID: id, Name: name})
	}
	next.Waiting = slices.DeleteFunc(next.Waiting, func(w Waiting) bool { return now.Sub(w.At) > waitFor })
	if len(next.Waiting) >= maxWaiting {
		return "", fault.New(fault.RateLimited, op, "too many people wait to be let in").WithHint("An owner has to answer for them first.")
	}
	next.Waiting = append(next.Waiting, Waiting{ID: id, Name: name, At: now})
	return Waits, r.write(ctx, next, event.OwnerWaiting, &event.OwnerNews{ID: id, Name: name})
}

// Decide is an owner's word about somebody who waits. Nobody waits twice, so
// saying it again is no error when it is the same word.
func (r *Room) Decide(ctx context.Context, id int64, letIn bool) (Outcome, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.kept.Ready(); err != nil {
		return "", err
	}
	if letIn && r.isOwner(id) {
		return Already, nil
	}
	now := time.Now().UTC()
	i := slices.IndexFunc(r.rec.Waiting, func(w Waiting) bool { return w.ID == id && now.Sub(w.At) <= waitFor })
	if i < 0 {
		return "", fault.New(fault.NotFound, "let an owner in", "nobody of that id waits").WithHint("They need a new code: tapin pair.")
	}
	next := r.rec.clone()
	who := next.Waiting[i]
	next.Waiting = slices.Delete(next.Waiting, i, i+1)
	news := &event.OwnerNews{ID: who.ID, Name: who.Name}
	if !letIn {
		return "", r.write(ctx, next, event.OwnerRefused, news)
	}
	next.Owners = append(next.Owners, Owner{ID: who.ID, Name: who.Name, PairedAt: now})
	return Paired, r.write(ctx, next, event.OwnerPaired, news)
}

// Remove takes an owner off the list; one by configuration stays.
func (r *Room) Remove(ctx context.Context, id int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.fixed, id) {
		return fault.New(fault.Forbidden, "remove an owner", "%d is an owner by configuration", id).WithHint("Take it out of telegram.owners in config.yaml.")
	}
	if err := r.kept.Ready(); err != nil {
		return err
	}
	i := slices.IndexFunc(r.rec.Owners, func(o Owner) bool { return o.ID == id })
	if i < 0 {
		return fault.New(fault.NotFound, "remove an owner", "there is no owner %d", id).WithHint("GET /owners lists them.")
	}
	next := r.rec.clone()
	news := &event.OwnerNews{ID: id, Name: next.Owners[i].Name}
	next.Owners = slices.Delete(next.Owners, i, i+1)
	return r.write(ctx, next, event.OwnerRemoved, news)
}

// List tells who is an owner, and who waits.
func (r *Room) List() ([]Owner, []Waiting) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.kept.Ready() // while it cannot be read the list is that of the fixed ones
	out := slices.Clone(r.rec.Owners)
	for _, id := range r.fixed {
		if !slices.ContainsFunc(out, func(o Owner) bool { return o.ID == id }) {
			out = append(out, Owner{ID: id, Fixed: true})
		}
	}
	now := time.Now()
	waiting := slices.DeleteFunc(slices.Clone(r.rec.Waiting), func(w Waiting) bool { return now.Sub(w.At) > waitFor })
	return out, waiting
}

// Is reports whether somebody is an owner.
func (r *Room) Is(id int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.kept.Ready()
	return r.isOwner(id)
}

func (r *Room) isOwner(id int64) bool {
	return slices.Contains(r.fixed, id) || slices.ContainsFunc(r.rec.Owners, func(o Owner) bool { return o.ID == id })
}

// write replaces the record together with its news, then tells them. Called
// with the lock held.
func (r *Room) write(ctx context.Context, next record, kind string, news *event.OwnerNews) error {
	next.Version++
	if kind != "" {
		data, err := json.Marshal(news)
		if err != nil {
			return err
		}
		next.Outbox = append(next.Outbox, event.Event{ID: "owners", Version: next.Version, Type: kind, At: time.Now().UTC(), Data: data})
	}
	if err := r.kept.Write(next); err != nil {
		return fault.Wrap(fault.Internal, "write "+file, err)
	}
	r.rec = next
	r.deliver(ctx)
	return nil
}

func (r *Room) deliver(ctx context.Context) {
	if len(r.rec.Outbox) == 0 || r.pump != nil && r.pump.Deliver(context.WithoutCancel(ctx), r.rec.Outbox...) != nil {
		return // told with the next change, or by the next start
	}
	r.rec.Outbox = nil
	_ = r.kept.Write(r.rec) // told again otherwise, which is telling once
}

func newCode() secret.Text {
	var b [codeLength]byte
	for i := range b {
		for {
			var one [1]byte
			_, _ = rand.Read(one[:]) // never fails
			if n := int(one[0]); n < 256-256%len(codeLetters) {
				b[i] = codeLetters[n%len(codeLetters)]
				break
			}
		}
	}
	return secret.New(string(b[:]))
}

func digestOf(code secret.Text) string {
	sum := sha256.Sum256([]byte("tapin pairing\n" + code.Reveal()))
	return hex.EncodeToString(sum[:])
}

func cut(name string) string {
	runes := []rune(strings.ToValidUTF8(name, ""))
	return string(runes[:min(len(runes), maxName)])
}
