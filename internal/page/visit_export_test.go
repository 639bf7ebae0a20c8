package page

import (
	"context"
	"testing"
)

// Unasked reports whether the page told it by itself.
func (s *Snapshot) Unasked() bool { return s.unasked }

// AskAll has every document tell its outline, as one whose asker died does.
func (t *Tab) AskAll(ctx context.Context, tb testing.TB, o SnapshotOptions) (unask func()) {
	tb.Helper()
	if err := o.check(); err != nil {
		tb.Fatal(err)
	}
	a := t.expect(ctx)
	defer a.end()
	unask = a.ask("pageshow", o)
	if a.ready(ctx); a.asked == nil {
		tb.Fatal("the question did not get there")
	}
	return unask
}
