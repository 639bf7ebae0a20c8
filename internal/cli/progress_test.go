package cli

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressTellsAfterASecond(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		terminal bool
		want     string
	}{
		"on a terminal, on one line that goes again": {true, "\r\x1b[K  working … 1 s\r\x1b[K  working … 2 s\r\x1b[K"},
		"elsewhere, once": {false, "working …\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.terminal = tt.terminal
				w.Environ = append(w.Environ, "NO_COLOR=1")
				a := &app{env: w.Env}
				done := a.progress("working")
				time.Sleep(2500 * time.Millisecond)
				done()
				if got := w.stderr.String(); got != tt.want {
					t.Fatalf("said %q", got)
				}
			})
		})
	}
}
