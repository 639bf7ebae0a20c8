package forget_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tapin/internal/event"
	"tapin/internal/forget"
	"tapin/internal/store"
)

const chase = "chase.example"

func openAt(t *testing.T, path string, opts *store.Options) *store.Home {
	t.Helper()
	home, err := store.Open(path, opts)
	must(t, err)
	t.Cleanup(func() { _ = home.Close() })
	return home
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func fill(t *testing.T, home *store.Home, files map[string]string) {
	t.Helper()
	for name, text := range files {
		must(t, home.Write(name, []byte(text)))
	}
}

// forgetIn plans, notes and fulfils.
func forgetIn(t *testing.T, home *store.Home) (left []string) {
	t.Helper()
	w, err := forget.Plan(home, chase)
	must(t, err)
	must(t, forget.Note(home, w))
	left, err = forget.Fulfil(home, w, forget.Counts{})
	must(t, err)
	return left
}

func TestARecordOfAnotherSiteStaysWithoutTheMention(t *testing.T) {
	t.Parallel()
	home := openAt(t, t.TempDir(), nil)
	fill(t, home, map[string]string{
		"handoffs/hof_shop/meta.json": `{"handoff_id":"hof_shop","session_id":"ses_chase","task":"first\nchase.example, then the shop","before":{"url":"https://shop.test/?next=https%3A%2F%2Fchase.example","origin":"https://shop.test","title":"Shop"},
			"book":{"remind_at":[1],"outbox":[{"id":"hof_shop","data":{"origin":"https://shop.test","task":"as for chase.example"}},{"id":"x","data":{"origin":"https://chase.example"}}]}}`,
		"handoffs/hof_shop/events.jsonl":   `{"n":1,"task":"chase.example"}` + "\n" + `{"n":2,"task":"the shop"}` + "\n",
		"handoffs/hof_shop/before.png":     "picture",
		"approvals/apr_shop.json":          `{"approval_id":"apr_shop","site":"shop.test","payee":"Shop","description":"like at chase.example","claim":{"amount":"12.50"}}`,
		"sessions/ses_shop.json":           `{"session_id":"ses_shop","origins":["https://shop.test"],"notes":["not chase.example"]}`,
		"todos/todo_shop.json":             `{"todo_id":"todo_shop","handoff_id":"hof_shop","site":"shop.test","task":"chase.example too"}`,
		"task-runs/run_shop/meta.json":     `{"run_id":"run_shop","goal":"buy","notes":[{"text":"chase.example is down"}],"evidence":[{"ref":"hof_shop","summary":"beside chase.example"},{"ref":"hof_chase"}]}`,
		"handoffs/hof_chase/meta.json":     `{"handoff_id":"hof_chase","session_id":"ses_chase","before":{"origin":"https://shop.test"},"after":{"url":"https://login.chase.example/"}}`,
		"handoffs/hof_chase/after.png":     "picture",
		"approvals/apr_chase.json":         `{"approval_id":"apr_chase","site":"pay.test","payee":"Chase (chase.example)"}`,
		"sessions/ses_chase.json":          `{"session_id":"ses_chase","origins":["https://shop.test","https://www.chase.example"]}`,
		"todos/todo_chase.json":            `{"todo_id":"todo_chase","handoff_id":"hof_chase","site":"shop.test"}`,
		"task-runs/run_chase/meta.json":    `{"run_id":"run_chase","goal":"pay at <chase.example>","evidence":[{"ref":"hof_shop"}]}`,
		"approvals/apr_lookalike.json":     `{"approval_id":"apr_lookalike","site":"my-chase.example"}`,
		"inbox/000000000001.json":          `{"text":"\u003cchase.example\u003e"}`,
		"inbox/000000000002.json":          `{"text":"purchase.example"}`,
		"telegram/queue/e1.json":           `{"text":"https%3A%2F%2Fchase.example"}`,
		"journal/journal-2026-11-19.jsonl": `{"outcome":"a\nchase.example"}` + "\n" + `{"outcome":"b"}` + "\n",
	})
	if left := forgetIn(t, home); len(left) > 0 {
		t.Errorf("there is left %v", left)
	}
	for name, want := range map[string]string{
		"handoffs/hof_shop/meta.json":      `{"before":{"origin":"https://shop.test","title":"Shop"},"book":{"outbox":[{"data":{"origin":"https://shop.test"},"id":"hof_shop"}],"remind_at":[1]},"handoff_id":"hof_shop","session_id":"ses_chase"}`,
		"handoffs/hof_shop/events.jsonl":   `{"n":2,"task":"the shop"}`,
		"handoffs/hof_shop/before.png":     "picture",
		"approvals/apr_shop.json":          `{"approval_id":"apr_shop","claim":{"amount":"12.50"},"payee":"Shop","site":"shop.test"}`,
		"sessions/ses_shop.json":           `{"notes":[],"origins":["https://shop.test"],"session_id":"ses_shop"}`,
		"todos/todo_shop.json":             `{"handoff_id":"hof_shop","site":"shop.test","todo_id":"todo_shop"}`,
		"task-runs/run_shop/meta.json":     `{"evidence":[{"ref":"hof_shop"}],"goal":"buy","notes":[{}],"run_id":"run_shop"}`,
		"approvals/apr_lookalike.json":     `{"approval_id":"apr_lookalike","site":"my-chase.example"}`,
		"inbox/000000000002.json":          `{"text":"purchase.example"}`,
		"journal/journal-2026-11-19.jsonl": `{"outcome":"b"}`,
		"handoffs/hof_chase/meta.json":     "", "handoffs/hof_chase/after.png": "", "approvals/apr_chase.json": "", "sessions/ses_chase.json": "",
		"todos/todo_chase.json": "", "task-runs/run_chase/meta.json": "", "inbox/000000000001.json": "", "telegram/queue/e1.json": "",
	} {
		if got, _ := home.Read(name); strings.TrimSpace(string(got)) != want {
			t.Errorf("%s holds\n%s\nand not\n%s", name, got, want)
		}
	}
}

func TestWhatCannotBeReadIsLeftAndTold(t *testing.T) {
	t.Parallel()
	torn := []string{"approvals/apr_1.json", "handoffs/hof_1/meta.json", "policies.json", "todos/todo_1.json"}
	shut := []string{"events/00000000000000000001.jsonl", "inbox/000000000001.json", "logs/sidecar.log", "sessions/ses_1.json"}
	path := t.TempDir()
	home := openAt(t, path, &store.Options{Broken: func(name string) error {
		if slices.Contains(shut, name) {
			return errors.New("the disk does not give it")
		}
		return nil
	}})
	for _, name := range append(slices.Clone(torn), shut...) {
		fill(t, home, map[string]string{name: `{"site":"https://chase.ex`})
	}
	fill(t, home, map[string]string{"approvals/apr_2.json": `{"site":"chase.example"}`})
	left := forgetIn(t, home)
	want := slices.Sorted(slices.Values(append(slices.Clone(torn), shut...)))
	if !slices.Equal(left, want) {
		t.Errorf("left is %v, not %v", left, want)
	}
	if matter := forget.Matters(left); len(matter) != len(want)-1 || slices.Contains(matter, "logs/sidecar.log") {
		t.Errorf("of that it matters that %v is left", matter)
	}
	if there, _ := home.Exists("approvals/apr_2.json"); there {
		t.Error("what can be read was not forgotten beside it")
	}
}

// A kill between the first file of the feed and the next ones must not give the
// numbers that went to other events.
func TestNoNumberOfTheFeedIsGivenTwiceWhereverForgettingIsCutOff(t *testing.T) {
	t.Parallel()
	line := func(seq int, at string) string {
		return fmt.Sprintf(`{"seq":%d,"id":"e%d","version":1,"type":"a","at":"2026-11-19T10:00:00Z","data":{"origin":"https://%s"}}`+"\n", seq, seq, at)
	}
	cut := 0
	for at := 0; ; at++ {
		path := filepath.Join(t.TempDir(), "home")
		home := openAt(t, path, nil)
		fill(t, home, map[string]string{
			"events/00000000000000000001.jsonl": line(1, "shop.test") + line(2, chase),
			"events/00000000000000000003.jsonl": line(3, "shop.test") + line(4, chase) + line(5, chase),
		})
		w, err := forget.Plan(home, chase)
		must(t, err)
		must(t, forget.Note(home, w))
		must(t, home.Close())
		steps, dead := 0, false
		home = openAt(t, path, &store.Options{Guard: func(string) error {
			if steps++; steps > at {
				dead = true
				return errors.New("killed")
			}
			return nil
		}})
		_, err = forget.Fulfil(home, w, forget.Counts{})
		_ = home.Close()
		if dead != (err != nil) {
			t.Fatalf("after %d changes: %v", at, err)
		}
		home = openAt(t, path, nil)
		all, err := forget.Noted(home)
		must(t, err)
		_, err = forget.Fulfil(home, all[0], forget.Counts{})
		must(t, err)
		feed, err := event.OpenFeed(home, nil)
		must(t, err)
		next, err := feed.Publish(t.Context(), event.Event{ID: "new", Version: 1, Type: "a"})
		must(t, err)
		if events, _ := feed.Since(0, 1); next.Seq != 6 || len(events) != 1 || events[0].Seq != 1 {
			t.Errorf("cut off after %d changes, the next event is number %d", at, next.Seq)
		}
		must(t, feed.Close())
		if !dead {
			break
		}
		cut++
	}
	if cut < 3 {
		t.Errorf("it was cut off %d times only", cut)
	}
}

func TestWhatCameAfterAWishIsNotMeantByIt(t *testing.T) {
	t.Parallel()
	home := openAt(t, t.TempDir(), nil)
	w, err := forget.Plan(home, chase)
	must(t, err)
	then := w.At.Add(-time.Hour)
	old, later := then.Format(time.RFC3339), w.At.Add(time.Hour).Format(time.RFC3339)
	fresh := "handoffs/" + store.FirstID("hof", w.At.Add(time.Hour)) + "/meta.json"
	stale := "handoffs/" + store.FirstID("hof", then) + "/meta.json"
	files := map[string]string{
		fresh: `{"before":{"origin":"https://chase.example"},"task":"chase.example"}`, "approvals/apr_1.json": `{"site":"chase.example","created_at":"` + later + `"}`,
		"inbox/000000000002.json": `{"text":"chase.example","at":"` + later + `"}`, "todos/todo_1.json": `{"site":"chase.example","created_at":"` + later + `"}`,
	}
	fill(t, home, files)
	fill(t, home, map[string]string{
		stale: `{"before":{"origin":"https://chase.example"}}`, "inbox/000000000001.json": `{"text":"chase.example","at":"` + old + `"}`,
		"journal/journal-2026-11-19.jsonl": `{"at":"` + old + `","origin":"https://chase.example"}` + "\n" + `{"at":"` + later + `","origin":"https://chase.example"}` + "\n",
		"logs/sidecar.log":                 "time=" + old + " msg=chase.example\ntime=" + later + " msg=chase.example\n",
		"policies.json":                    `{"version":1,"policies":[{"site":"chase.example","confirmed_at":"` + old + `"},{"site":"chase.example","confirmed_at":"` + later + `"}]}`,
	})
	must(t, forget.Note(home, w)) // as a start finds it that could not fulfil it before
	all, err := forget.Noted(home)
	must(t, err)
	again, err := all[0].Again(home)
	must(t, err)
	left, err := forget.Fulfil(home, again, forget.Counts{})
	if err != nil || len(left) > 0 {
		t.Fatalf("%v, %v", left, err)
	}
	for name, want := range files {
		if got, _ := home.Read(name); string(got) != want {
			t.Errorf("%s, which is newer, holds %q", name, got)
		}
	}
	for _, name := range []string{stale, "inbox/000000000001.json"} {
		if there, _ := home.Exists(name); there {
			t.Errorf("%s, which is older, is there", name)
		}
	}
	for _, name := range []string{"journal/journal-2026-11-19.jsonl", "logs/sidecar.log", "policies.json"} {
		if got, _ := home.Read(name); strings.Count(string(got), chase) != 1 || !strings.Contains(string(got), later) {
			t.Errorf("%s holds %q", name, got)
		}
	}
}

func TestSeveralWishesStandBesideEachOther(t *testing.T) {
	t.Parallel()
	home := openAt(t, t.TempDir(), nil)
	must(t, forget.Note(home, forget.Wish{Site: chase, Records: []string{"hof_1"}}))
	must(t, forget.Note(home, forget.Wish{Site: "shop.test"}))
	must(t, forget.Note(home, forget.Wish{Site: chase, Records: []string{"hof_1", "hof_2"}}))
	all, err := forget.Noted(home)
	if err != nil || len(all) != 2 || all[0].Site != chase || len(all[0].Records) != 2 || all[0].Since().IsZero() {
		t.Fatalf("noted are %+v, %v", all, err)
	}
	must(t, forget.Done(home, chase))
	if all, err = forget.Noted(home); err != nil || len(all) != 1 || all[0].Site != "shop.test" {
		t.Fatalf("noted are %+v, %v", all, err)
	}
	must(t, forget.Done(home, "shop.test"))
	if there, err := home.Exists("forget.json"); there || err != nil {
		t.Errorf("the wish is still there, %v", err)
	}
}
