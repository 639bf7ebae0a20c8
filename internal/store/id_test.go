package store_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tapin/internal/store"
)

func TestIDsAreValidUniqueAndSortByTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ids []string
		for range 1000 {
			id := store.NewID("ses")
			if !store.ValidID("ses", id) {
				t.Fatalf("%s is not valid", id)
			}
			ids = append(ids, id)
			time.Sleep(time.Millisecond)
		}
		if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
			t.Error("ids do not sort by creation, or repeat")
		}
		if a, b := store.NewID("ses"), store.NewID("ses"); a == b {
			t.Errorf("the same id twice in a millisecond: %s", a)
		}
	})
}

func TestTheFirstIDOfATimeDividesThoseBeforeFromThoseAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		before := store.NewID("apr")
		time.Sleep(time.Millisecond)
		first := store.FirstID("apr", time.Now())
		if after := store.NewID("apr"); before >= first || after < first || !store.ValidID("apr", first) {
			t.Errorf("%s, %s, %s", before, first, after)
		}
		if ever := store.FirstID("apr", time.Time{}); ever > before {
			t.Errorf("%s comes after %s", ever, before)
		}
	})
}

func TestOnlyExactIDsAreValid(t *testing.T) {
	t.Parallel()
	good := store.NewID("ses")
	for name, tt := range map[string]struct {
		prefix, id string
		want       bool
	}{
		"what was made":         {"ses", good, true},
		"another prefix":        {"hof", good, false},
		"a prefix alone":        {"ses", "ses_", false},
		"nothing":               {"ses", "", false},
		"too short":             {"ses", good[:len(good)-1], false},
		"too long":              {"ses", good + "0", false},
		"upper case":            {"ses", "ses_0000000000000000000000AB", false},
		"a letter left out":     {"ses", "ses_00000000000000000000000l", false},
		"a path":                {"ses", "ses_../../../../etc/passwd00", false},
		"a line break":          {"ses", good[:len(good)-1] + "\n", false},
		"other digits":          {"ses", "ses_00000000000000000000000\u0660", false},
		"an id within a longer": {"ses", "x" + good, false},
	} {
		if got := store.ValidID(tt.prefix, tt.id); got != tt.want {
			t.Errorf("%s: ValidID(%q, %q) = %v", name, tt.prefix, tt.id, got)
		}
	}
}
