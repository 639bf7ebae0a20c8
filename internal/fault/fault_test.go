package fault_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"tapin/internal/fault"
)

func TestEveryCodeHasAMeaning(t *testing.T) {
	t.Parallel()
	seen := map[fault.Code]bool{}
	for _, c := range fault.Codes() {
		if seen[c] {
			t.Errorf("%s is in the table twice", c)
		}
		seen[c] = true
		if c.Status() < 400 || c.Status() > 599 || c.Exit() == 0 {
			t.Errorf("%s: status %d, exit %d", c, c.Status(), c.Exit())
		}
		if !strings.HasSuffix(c.Sentence(), ".") || !strings.HasSuffix(c.Hint(), ".") {
			t.Errorf("%s: sentence %q and hint %q must be sentences", c, c.Sentence(), c.Hint())
		}
	}
	if len(seen) != 39 {
		t.Errorf("the contract has 39 codes, the table %d", len(seen))
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	blocked := fault.New(fault.BlockedTarget, "navigate http://10.0.0.1", "blocked by rule %s", "private").With("rule", "private")
	for name, tt := range map[string]struct {
		err     error
		code    fault.Code
		details string
	}{
		"a fault keeps its code":               {blocked, fault.BlockedTarget, "navigate http://10.0.0.1: blocked by rule private"},
		"a wrapped fault keeps code and text":  {fmt.Errorf("start: %w", blocked), fault.BlockedTarget, "start: navigate http://10.0.0.1: blocked by rule private"},
		"wrapping again keeps the inner code":  {fault.Wrap(fault.Internal, "start", blocked), fault.BlockedTarget, "start: navigate http://10.0.0.1: blocked by rule private"},
		"a bare code is a fault":               {fault.NoSession, fault.NoSession, "NO_SESSION"},
		"an unknown error shows nothing of it": {errors.New("pq: password is hunter2"), fault.Internal, fault.Internal.Sentence()},
		"a cancelled call is busy":             {fmt.Errorf("x: %w", context.Canceled), fault.Busy, "the call was given up before it ended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := fault.Of(tt.err)
			if got.Code != tt.code || got.Details() != tt.details {
				t.Fatalf("got %s %q, want %s %q", got.Code, got.Details(), tt.code, tt.details)
			}
			if !errors.Is(got, tt.code) {
				t.Fatal("errors.Is does not see the code")
			}
		})
	}
	if got := fault.Of(fault.Wrap(fault.Internal, "start", blocked)); got.Data["rule"] != "private" {
		t.Fatalf("data was lost: %v", got.Data)
	}
	if fault.Of(nil) != nil || fault.Wrap(fault.Busy, "x", nil) != nil {
		t.Fatal("no error must stay no error")
	}
}
