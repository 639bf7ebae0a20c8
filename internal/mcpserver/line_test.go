package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"tapin/internal/api"
	"tapin/internal/fault"
	"tapin/internal/secret"
)

// dying is a sidecar that goes away in the middle of its first calls.
func dying(t *testing.T, dies int32) (connect Connect, calls, lines *atomic.Int32) {
	t.Helper()
	calls, lines = new(atomic.Int32), new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) <= dies {
			panic(http.ErrAbortHandler)
		}
		_, _ = fmt.Fprint(w, `{"ok":true,"session_id":"ses_1","snapshot":"> hello"}`)
	}))
	t.Cleanup(s.Close)
	return func(context.Context) (*api.Client, error) {
		lines.Add(1)
		return api.NewClient(s.URL, secret.New("x"), nil)
	}, calls, lines
}

func TestWhatMayHaveBeenDoneIsNotDoneAgain(t *testing.T) {
	t.Parallel()
	connect, calls, lines := dying(t, 1)
	l := newLine(connect)
	_, err := tell(t.Context(), l, func(c *api.Client) (*api.ClickAnswer, error) { return c.Click(t.Context(), "", api.ClickRequest{}) })
	if !errors.Is(err, fault.Busy) || !strings.Contains(err.Error(), "not known") || calls.Load() != 1 {
		t.Fatalf("%d calls, %v", calls.Load(), err)
	}
	if !strings.Contains(fault.Of(err).Advice(), "browser_snapshot") {
		t.Errorf("the hint is %q", fault.Of(err).Advice())
	}
	if _, err := tell(t.Context(), l, func(c *api.Client) (*api.ClickAnswer, error) { return c.Click(t.Context(), "", api.ClickRequest{}) }); err != nil || lines.Load() != 2 {
		t.Errorf("the next call: %v over line %d", err, lines.Load())
	}
}

func TestWhatOnlyReadsIsAskedAgainOnce(t *testing.T) {
	t.Parallel()
	look := func(ctx context.Context, l *line) (*api.SnapshotAnswer, error) {
		return ask(ctx, l, func(c *api.Client) (*api.SnapshotAnswer, error) { return c.Snapshot(ctx, "", api.SnapshotQuery{}) })
	}
	connect, _, lines := dying(t, 1)
	if got, err := look(t.Context(), newLine(connect)); err != nil || got.Snapshot != "> hello" || lines.Load() != 2 {
		t.Errorf("got %v over line %d: %v", got, lines.Load(), err)
	}
	connect, _, lines = dying(t, 1000)
	if _, err := look(t.Context(), newLine(connect)); !errors.Is(err, api.ErrBroken) || lines.Load() != 2 {
		t.Errorf("after %d lines: %v", lines.Load(), err)
	}
}

func TestASidecarThatIsGoneIsLookedForAgain(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	alive, calls, _ := dying(t, 0)
	lines := 0
	l := newLine(func(ctx context.Context) (*api.Client, error) {
		if lines++; lines == 1 {
			return api.NewClient(gone.URL, secret.New("x"), nil)
		}
		return alive(ctx)
	})
	// It never arrived, so it is sent again also if it changes something.
	if _, err := tell(t.Context(), l, func(c *api.Client) (*api.ClickAnswer, error) { return c.Click(t.Context(), "", api.ClickRequest{}) }); err != nil || calls.Load() != 1 || lines != 2 {
		t.Errorf("%d calls over line %d: %v", calls.Load(), lines, err)
	}
}
