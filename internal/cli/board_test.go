package cli

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tapin/internal/api"
)

var ansi = regexp.MustCompile("\x1b\\[[0-9;]*m")

func busyBoard(now time.Time) *board {
	b := &board{version: "1.2.3", program: "tapin", todos: 2}
	b.turns = []api.Handoff{
		{HandoffID: "hof_1", Reason: "login", Instruction: "Please log in, and mind the second page", Deadline: now.Add(12*time.Minute + 31*time.Second), Before: api.Snapshot{Origin: "https://bank.example"}},
		{HandoffID: "hof_2", Reason: "manual_recovery", Parked: true, Deadline: now.Add(time.Minute)},
	}
	b.asks = []api.Approval{{ApprovalID: "apr_1", Amount: "142.50", Currency: "USD", Payee: "Verizon", Deadline: now.Add(2 * time.Hour), Differs: []string{"amount"}}}
	b.seats = []seat{
		{SessionInfo: api.SessionInfo{SessionID: "ses_1", Provider: "local", Deadline: now.Add(time.Minute)}, status: api.Status{Driver: "human", URL: "https://bank.example/login?code=hunter2#x", Title: "Log in"}},
		{SessionInfo: api.SessionInfo{SessionID: "ses_2", Provider: "browserbase", Context: "shop"}, status: api.Status{Driver: "agent", URL: "https://shop.example/", Title: "日本語のとても長いページの題名はここで切られます"}},
	}
	for i := range 30 {
		b.happened(happening{at: now.Add(time.Duration(i) * time.Second), who: "agent", text: fmt.Sprintf("click %d on shop.example", i)})
	}
	return b
}

func TestBoardFitsEveryTerminal(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	b := busyBoard(now)
	rapid.Check(t, func(t *rapid.T) {
		columns, rows := rapid.IntRange(1, 250).Draw(t, "columns"), rapid.IntRange(1, 80).Draw(t, "rows")
		for _, ink := range []paint{{}, {on: true}} {
			drawn := b.draw(columns, rows, now, ink)
			if len(drawn) != rows {
				t.Fatalf("%d rows of %d", len(drawn), rows)
			}
			for _, row := range drawn {
				if plain := ansi.ReplaceAllString(row, ""); cells(plain) > columns || strings.ContainsAny(plain, "\n\x1b") {
					t.Fatalf("%d columns: %q", columns, row)
				}
			}
		}
	})
}

func TestBoardShowsWhatMattersFirst(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	b := busyBoard(now)
	for _, size := range [][2]int{{80, 24}, {40, 24}} {
		screen := strings.Join(b.draw(size[0], size[1], now, paint{}), "\n")
		for _, want := range []string{"A person is needed", "● login", "12:31 left", "parked", "142.50 USD to Verizon", "2:00:00 left", "a person drives", "bank.example/login", "click 29", "q ends watching"} {
			if !strings.Contains(screen, want) {
				t.Errorf("at %v %q is not on\n%s", size, want, screen)
			}
		}
		if strings.Contains(screen, "hunter2") {
			t.Errorf("a query is on the screen:\n%s", screen)
		}
	}
	if screen := strings.Join(b.draw(80, 6, now, paint{}), "\n"); !strings.Contains(screen, "● login") || strings.Contains(screen, "Lately") {
		t.Errorf("six rows:\n%s", screen)
	}
	empty := &board{version: "1", program: "tapin"}
	if screen := strings.Join(empty.draw(80, 24, now, paint{}), "\n"); !strings.Contains(screen, "nothing waits for you") {
		t.Errorf("an empty one:\n%s", screen)
	}
}

func TestBoardKeepsThePastInOrder(t *testing.T) {
	t.Parallel()
	b, at := &board{}, time.Unix(1000, 0)
	entries := []api.JournalEntry{{At: at, What: "session.click", Outcome: "ok"}, {At: at.Add(2 * time.Second), What: "session.type", Outcome: "ELEMENT_NOT_FOUND"}}
	b.journal(entries)
	b.happened(happening{at: at.Add(time.Second), text: "between"})
	b.journal(entries) // asked again, with nothing new
	var told []string
	for _, h := range b.lately {
		told = append(told, h.text)
	}
	if got := strings.Join(told, "|"); got != "click, 0 ms|between|type: ELEMENT_NOT_FOUND" || !b.lately[2].bad {
		t.Errorf("told %s", got)
	}
	for range 3 * mostLately {
		b.happened(happening{at: at})
	}
	if len(b.lately) != mostLately {
		t.Errorf("%d are kept", len(b.lately))
	}
}
