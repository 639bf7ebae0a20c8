package event

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheJournalHasAFileADayAndForgetsOldOnes(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	synctest.Test(t, func(t *testing.T) { // midnight of 2000-01-01 UTC
		j := NewJournal(h, &JournalOptions{Days: 3})
		defer j.Close()
		must(t, h.Write("journal/readme.txt", nil))
		start := time.Now()
		for range 5 {
			must(t, j.Write(Entry{Who: "agent", What: "session.click", Outcome: "ok"}))
			must(t, j.Write(Entry{Who: "agent", What: "session.type", Counts: map[string]int{"characters": 14}, Outcome: "BUSY"}))
			time.Sleep(24 * time.Hour)
		}
		names, err := h.List("journal")
		must(t, err)
		want := []string{"journal-2000-01-03.jsonl", "journal-2000-01-04.jsonl", "journal-2000-01-05.jsonl", "readme.txt"}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Error(diff)
		}
		for name, tt := range map[string]struct {
			since time.Time
			want  int
		}{
			"all":                 {time.Time{}, 6},
			"from within a day":   {start.Add(84 * time.Hour), 2},
			"from an exact entry": {start.Add(72 * time.Hour), 4},
			"from the future":     {start.Add(999 * time.Hour), 0},
		} {
			n := 0
			must(t, j.Scan(tt.since, func(Entry) error { n++; return nil }))
			if n != tt.want {
				t.Errorf("%s: %d entries", name, n)
			}
		}
	})
}

func TestAnEntryComesBackAsItWas(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	j := NewJournal(h, nil)
	want := Entry{
		At: time.Now().UTC().Round(0), Who: "owner", What: "session.type", Session: "ses_1", Origin: "https://example.com",
		Counts: map[string]int{"characters": 14}, Took: 1234567 * time.Microsecond, Outcome: "ok",
	}
	must(t, j.Write(want))
	must(t, j.Close())
	must(t, j.Close())
	var got []Entry
	must(t, j.Scan(want.At, func(e Entry) error { got = append(got, e); return nil }))
	if diff := cmp.Diff([]Entry{want}, got); diff != "" {
		t.Error(diff)
	}
	file, err := os.ReadFile(filepath.Join(h.Path(), journalFile(want.At.Format(time.DateOnly))))
	must(t, err)
	if !strings.Contains(string(file), `"took_ms":1234.567`) {
		t.Errorf("the line is %s", file)
	}
}
