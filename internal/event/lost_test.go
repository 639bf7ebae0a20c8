package event

import (
	"os"
	"path/filepath"
	"testing"
)

// An event whose line lost its end by one bit was told under its number.
func TestAFeedWithADamagedEndGivesNoNumberTwice(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	f, err := OpenFeed(h, nil)
	must(t, err)
	for n := range 3 {
		_, err := f.Publish(t.Context(), happened("a", n+1))
		must(t, err)
	}
	last := f.Last()
	must(t, f.Close())
	file := filepath.Join(h.Path(), "events", "00000000000000000001.jsonl")
	raw, err := os.ReadFile(file)
	must(t, err)
	raw[len(raw)-1] = 'J'
	must(t, os.WriteFile(file, raw, 0o600))
	must(t, os.WriteFile(filepath.Join(h.Path(), "events", "18446744073709551615.jsonl"), nil, 0o600))
	for range 2 {
		f, err = OpenFeed(h, nil)
		must(t, err)
		e, err := f.Publish(t.Context(), happened("b", int(last)+1)) //nolint:gosec // small
		must(t, err)
		if e.Seq <= last {
			t.Errorf("number %d is given again", e.Seq)
		}
		must(t, f.Close())
		last++
	}
	if len(h.Damages()) != 1 {
		t.Errorf("told: %+v", h.Damages())
	}
}
