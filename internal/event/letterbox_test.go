package event

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestALetterIsToldOnceWhateverHappensInBetween(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	letters := NewLetterbox(h, nil)
	first := Event{ID: "dmn_1", Version: 1, Type: DaemonGaveUp}
	must(t, letters.Leave(first))
	must(t, letters.Leave(first)) // the writer was killed before it knew that it had written
	must(t, h.Write("letters/torn.json", []byte("{")))
	must(t, h.Write("letters/readme", nil))

	feed, err := OpenFeed(h, nil)
	must(t, err)
	defer feed.Close()
	pump := NewPump(feed, h, nil)
	must(t, letters.Collect(t.Context(), pump))
	must(t, letters.Leave(first)) // as if the reader was killed before it had removed it
	must(t, letters.Collect(t.Context(), pump))

	told, _ := feed.Since(0, 0)
	if len(told) != 1 || told[0].ID != "dmn_1" || told[0].Type != DaemonGaveUp || told[0].At.IsZero() {
		t.Fatalf("told %+v", told)
	}
	names, err := h.List("letters")
	if err != nil || len(names) != 2 || names[0] != "readme" || !strings.HasPrefix(names[1], "torn.json.damaged-") {
		t.Fatalf("left over: %v, %v", names, err)
	}
}

func TestALetterThatCannotBeToldYetStays(t *testing.T) {
	t.Parallel()
	h := openHome(t)
	letters := NewLetterbox(h, nil)
	must(t, letters.Leave(Event{ID: "dmn_1", Version: 1, Type: DaemonGaveUp}))
	feed, err := OpenFeed(h, nil)
	must(t, err)
	must(t, feed.Close())
	if err := letters.Collect(t.Context(), NewPump(feed, h, nil)); err == nil {
		t.Fatal("a closed feed took it")
	}
	if _, err := os.Stat(filepath.Join(h.Path(), "letters", "dmn_1-1.json")); err != nil {
		t.Fatal(err)
	}
}

func TestALetterCannotBeLeftElsewhere(t *testing.T) {
	t.Parallel()
	letters := NewLetterbox(openHome(t), nil)
	for _, id := range []string{"", "../x", ".x", `a\b`} {
		if letters.Leave(Event{ID: id, Version: 1, Type: "x"}) == nil {
			t.Errorf("%q was taken for an id", id)
		}
	}
}
