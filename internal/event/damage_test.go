package event

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"tapin/internal/store"
	"tapin/internal/trouble"
)

// damagesOf is what is told of a home by a process that begins now, reads a file
// and does more.
func damagesOf(t *testing.T, path string, more func(h *store.Home)) (told map[string]int, shown []trouble.Trouble) {
	t.Helper()
	told = map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		h, err := store.Open(path, nil)
		must(t, err)
		defer func() { must(t, h.Close()) }()
		var board trouble.Board
		d := WatchDamages(h, &board, nil)
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			d.Run(ctx, func(_ context.Context, e Event) error { told[e.ID]++; return nil }, nil)
		}()
		more(h)
		synctest.Wait()
		shown = board.List()
		stop()
		<-over
	})
	return told, shown
}

func TestADamageIsToldOnceAndTheNextOfTheSameFileAnew(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "home")
	const name = "owners.json"
	file := filepath.Join(path, name)
	read := func(h *store.Home) {
		var v map[string]any
		_ = h.ReadRecord(name, &v, nil)
	}
	damagesOf(t, path, func(*store.Home) {}) // makes the home
	must(t, os.WriteFile(file, []byte("{"), 0o600))
	first, shown := damagesOf(t, path, read)
	if len(first) != 1 || len(shown) != 1 || shown[0].State != trouble.Unreadable {
		t.Fatalf("told %v, shown %+v", first, shown)
	}
	again, _ := damagesOf(t, path, read)
	for id := range first {
		if len(again) != 1 || again[id] != 1 {
			t.Errorf("the same damage at the next start has another name: %v, %v", first, again)
		}
	}
	must(t, os.WriteFile(file, []byte("{}"), 0o600))
	damagesOf(t, path, read)
	must(t, os.WriteFile(file, []byte("{"), 0o600))
	must(t, os.Chtimes(file, time.Time{}, time.Now().Add(time.Hour)))
	next, _ := damagesOf(t, path, read)
	for id := range first {
		if len(next) != 1 || next[id] != 0 {
			t.Errorf("the next damage of the same file has the same name: %v, %v", first, next)
		}
	}
	mended, shown := damagesOf(t, path, func(h *store.Home) {
		read(h)
		must(t, os.WriteFile(file, []byte("{}"), 0o600))
		read(h)
		must(t, os.WriteFile(file, []byte("{"), 0o600))
		read(h)
	})
	if len(mended) != 2 || len(shown) != 1 {
		t.Errorf("damaged, mended and damaged again it is told %v, shown %+v", mended, shown)
	}
}
