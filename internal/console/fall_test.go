package console_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"tapin/internal/browser/browsertest"
	"tapin/internal/console"
	"tapin/internal/guard"
)

// falling panics as it is looked at, so many times.
type falling struct {
	console.House
	left atomic.Int32
}

func (f *falling) Look(ctx context.Context) console.State {
	if f.left.Add(-1) >= 0 {
		panic("hunter2-canary")
	}
	return f.House.Look(ctx)
}

func TestALookThatPanicsIsAFailureOfTheConsole(t *testing.T) { //nolint:paralleltest // the guard is the process's
	reports := t.TempDir()
	defer guard.Install(&guard.Process{Reports: &guard.Reports{Home: reports, Part: "sidecar"}})()
	ctx := browsertest.Context(t)
	h := newHouse(t, func(d *console.Deps) {
		f := &falling{House: d.House}
		f.left.Store(2)
		d.House = f
	})
	s := h.sheet(ctx, h.device(ctx))
	s.heard(ctx, "the state", func(m map[string]any) bool { return m["t"] == "state" })
	if all, err := guard.List(reports); err != nil || len(all) != 1 || all[0].Times != 2 || all[0].Room != guard.Console {
		t.Errorf("reported: %+v, %v", all, err)
	}
	// Where it is given up, whoever has it open is told, and whoever comes.
	const why = "console failed too often and is off"
	h.door.Off(why)
	off := func(m map[string]any) bool {
		troubles, _ := m["troubles"].([]any)
		return m["t"] == "state" && len(troubles) > 0 && strings.HasPrefix(troubles[0].(string), why)
	}
	s.heard(ctx, "that it is off", off)
	h.sheet(ctx, h.device(ctx)).heard(ctx, "that it is off", off)
}
