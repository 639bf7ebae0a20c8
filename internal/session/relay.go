package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
)

// maxRelayed is how many relayed texts a session remembers by their keys.
const maxRelayed = 64

// relayed is a text that was typed for the owner: under which key it came, and
// what became of it. Nothing of the text itself.
type relayed struct {
	Key   string      `json:"key"` // a digest
	Typed *page.Typed `json:"typed,omitempty"`
}

// Relay types what the owner of a hand-off sent into the field that has the
// focus. A text that comes again under the same key, because a message was
// delivered twice or a process died, is never typed twice.
func (h *Host) Relay(ctx context.Context, id, handoff string, text secret.Text, key string) (page.Typed, error) {
	const op = "type for the owner"
	s, err := h.Get(id)
	if err != nil {
		return page.Typed{}, err
	}
	if s.heldBy() != handoff {
		return page.Typed{}, notHeld(op)
	}
	ctx = acting(ctx, handoff)
	h.records.hidden(s.rec).Keep(text) // whatever field it goes into, it is no reading for the agent
	if key == "" {
		typed, _, err := s.Type(ctx, text, page.TypeOptions{})
		return typed, err
	}
	s.relaying.Lock()
	defer s.relaying.Unlock()
	sum := sha256.Sum256([]byte(handoff + "\n" + key))
	mark := hex.EncodeToString(sum[:16])
	if i := slices.IndexFunc(s.record().Relayed, func(r relayed) bool { return r.Key == mark }); i >= 0 {
		if before := s.record().Relayed[i].Typed; before != nil {
			return *before, nil
		}
		return page.Typed{}, fault.New(fault.BrowserLost, op, "it was begun before and may have been typed").With("effect", page.Unknown).
			WithHint("Look at the field before you send it again.")
	}
	// On record first: a kill right after the typing must not have it typed again.
	err = h.records.change(ctx, s.rec, "", func(r *record) { r.Relayed = remember(r.Relayed, relayed{Key: mark}) })
	if err != nil {
		return page.Typed{}, err
	}
	typed, begun, err := s.typeToTheEnd(ctx, text)
	written := h.records.change(context.WithoutCancel(ctx), s.rec, "", func(r *record) {
		if err != nil && begun && !untyped(err) {
			return // some of it may have been typed: never again
		}
		r.Relayed = forgetRelayed(r.Relayed, mark)
		if err == nil {
			r.Relayed = remember(r.Relayed, relayed{mark, &typed})
		}
	})
	if err == nil && written != nil {
		h.log.Warn("that a text was typed could not be kept", "session", id, "error", written)
	}
	return typed, err
}

// typeToTheEnd types all of a text once it has begun to, also when whoever sent
// it hangs up: one that was killed comes again under the same key, and is to
// find it typed and not in doubt. Who gives up before its turn has typed nothing.
func (s *Session) typeToTheEnd(ctx context.Context, text secret.Text) (typed page.Typed, begun bool, err error) {
	going, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	release := context.AfterFunc(ctx, stop)
	defer release()
	typed, _, err = do(going, s, "session.type", func(within context.Context, t *page.Tab) (page.Typed, counts, error) {
		if begun = release(); !begun {
			return page.Typed{}, nil, ctx.Err()
		}
		return typing(within, t, text, page.TypeOptions{})
	})
	return typed, begun, err
}

// untyped reports whether a failure left the field as it was.
func untyped(err error) bool {
	f := fault.Of(err)
	switch f.Code {
	case fault.InvalidRequest, fault.NoSession, fault.HandoffNotRunning, fault.HumanInControl, fault.NoFocusedField, fault.DialogOpen,
		fault.ElementNotFound, fault.ElementNotActionable:
		return f.Data["characters"] == nil
	}
	return false
}

func remember(all []relayed, one relayed) []relayed {
	all = append(slices.Clone(all), one)
	return all[max(0, len(all)-maxRelayed):]
}

// forgetRelayed takes a text back that was not typed after all.
func forgetRelayed(all []relayed, key string) []relayed {
	return slices.DeleteFunc(slices.Clone(all), func(r relayed) bool { return r.Key == key })
}
