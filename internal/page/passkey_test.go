package page

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Whoever clicks "sign in with a passkey" must not wait for the next look that would
// have come anyway; nor may one who never stops clicking keep it from coming.
func TestPasskeysAreLookedForSoonAfterAnAction(t *testing.T) {
	for _, each := range []struct {
		name  string
		acts  []time.Duration // since the beginning
		looks []time.Duration // in three seconds
	}{
		{"nobody acts", nil, []time.Duration{2 * time.Second}},
		{"one action", []time.Duration{500 * time.Millisecond}, []time.Duration{600 * time.Millisecond, 2600 * time.Millisecond}},
		{
			"actions without end", []time.Duration{500 * time.Millisecond, 540 * time.Millisecond, 580 * time.Millisecond, 620 * time.Millisecond},
			[]time.Duration{600 * time.Millisecond, 700 * time.Millisecond, 800 * time.Millisecond, 2800 * time.Millisecond},
		},
	} {
		t.Run(each.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &passkeys{acted: make(chan struct{}, 1)}
				began, over := time.Now(), make(chan struct{})
				var looks []time.Duration
				go p.keepLooking(t.Context(), over, func() { looks = append(looks, time.Since(began)) })
				for _, at := range each.acts {
					time.Sleep(at - time.Since(began))
					p.actedNow()
				}
				time.Sleep(3*time.Second - time.Since(began))
				close(over)
				synctest.Wait()
				if !slices.Equal(looks, each.looks) {
					t.Errorf("looked at %v, want %v", looks, each.looks)
				}
			})
		})
	}
}
