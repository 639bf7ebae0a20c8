package sidecar

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"tapin/internal/event"
	"tapin/internal/store"
	"tapin/internal/trouble"
)

// damaged is how many files may wait to be told of; beyond it the list alone
// knows them.
const damaged = 256

// watchFiles puts every file that cannot be used up on the list, and has the
// feed told of it.
func (s *sidecar) watchFiles() {
	s.damages = make(chan store.Damage, damaged)
	s.opts.Home.OnDamage(func(d store.Damage, again bool) {
		key := "file " + d.File
		if again {
			s.board.Clear(key)
			return
		}
		if d.Aside != "" {
			key = "file " + d.Aside
		}
		t := troubleOf(d)
		s.board.Set(key, t)
		select {
		case s.damages <- d:
		default:
		}
	})
	for _, d := range s.opts.Home.Asides(time.Now().Add(-toldWithin)) { // by the daemon, or a command
		select {
		case s.damages <- d:
		default:
		}
	}
}

// toldWithin is how far back is looked for what another process put aside. The
// feed has each once.
const toldWithin = 24 * time.Hour

// troubleOf says in the words of the list what became of a file.
func troubleOf(d store.Damage) trouble.Trouble {
	if d.Aside != "" {
		return trouble.Trouble{
			What: d.Kind, State: trouble.SetAside, Since: d.At,
			Details: fmt.Sprintf("%s: %s. The file is %s now.", d.File, d.Why, d.Aside),
			Hint:    "Nothing need be done. Keep the file if somebody shall look at it, or remove it.",
		}
	}
	return trouble.Trouble{
		What: d.Kind, State: trouble.Unreadable, Since: d.At,
		Details: fmt.Sprintf("%s: %s. The file is left as it is; everything else works.", d.File, d.Why),
		Hint:    "Run tapin doctor --fix: it says what can be done.",
	}
}

// tellDamages has the feed told, until ctx ends. The same damage of the same
// file is told once, however often tapin starts with it.
func (s *sidecar) tellDamages(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-s.damages:
			t := troubleOf(d)
			kind, id := event.FileUnread, "file "+d.File
			if d.Aside != "" {
				kind, id = event.FileSetAside, "file "+d.Aside
			}
			said := map[trouble.State]string{trouble.SetAside: " was put aside: ", trouble.Unreadable: " cannot be read: "}[t.State]
			data, err := json.Marshal(event.Trouble{Details: "The file of kind \"" + t.What + "\"" + said + t.Details, Hint: t.Hint})
			if err == nil {
				err = s.pump.Deliver(ctx, event.Event{ID: id, Version: 1, Type: kind, At: d.At, Data: data})
			}
			if err != nil && ctx.Err() == nil {
				s.opts.Logger.Warn("a damaged file could not be told of yet", "file", d.File, "error", err)
			}
		}
	}
}
