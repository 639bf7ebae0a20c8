package forget_test

import (
	"errors"
	"slices"
	"testing"

	"tapin/internal/fault"
	"tapin/internal/forget"
	"tapin/internal/site"
	"tapin/internal/store"
)

func TestWhatIsBelowASuffixIsOfOthers(t *testing.T) {
	t.Parallel()
	home, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for id, at := range map[string]string{"hof_1": "https://bank.com/", "hof_2": "https://www.bank.com/login", "hof_3": "https://a.github.io/", "hof_4": "http://10.127.0.0.1.example/"} {
		if err := home.Write("handoffs/"+id+"/meta.json", []byte(`{"url":"`+at+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	for at, want := range map[site.Site]int{"com": 0, "github.io": 0, "127.0.0.1": 0, "localhost": 0, "bank.com": 2, "a.github.io": 1} {
		if w, err := forget.Plan(home, at); err != nil || len(w.Records) != want {
			t.Errorf("of %s there is %v, %v", at, w.Records, err)
		}
	}
}

// What names no site would be found in everything.
func TestAWishThatSaysNothingForgetsNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{}", "null", `{"site":""}`, `{"site":"bank.example","records":[""]}`, `{"site":"www.bank.example"}`, `{"sit`} {
		home, err := store.Open(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := home.Write("forget.json", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if all, err := forget.Noted(home); len(all) > 0 || !errors.Is(err, fault.Unreadable) {
			t.Errorf("%s is a wish: %v, %v", text, all, err)
		}
		_ = home.Close()
	}
}

// A mark that a record is open stays until all was told of it. Only one that has
// not ended keeps its site from being forgotten.
func TestOnlyWhatHasNotEndedIsNotOver(t *testing.T) {
	t.Parallel()
	home, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = home.Close() })
	for name, record := range map[string]string{
		"handoffs/hof_1/meta.json":  `{"handoff_id":"hof_1","status":"RUNNING","before":{"origin":"https://bank.example"}}`,
		"handoffs/hof_2/meta.json":  `{"handoff_id":"hof_2","status":"CANCELLED","before":{"origin":"https://bank.example"}}`,
		"approvals/apr_1.json":      `{"approval_id":"apr_1","status":"used","site":"bank.example"}`,
		"approvals/apr_2.json":      `{"approval_id":"apr_2","status":"used","outcome":"confirmed","site":"bank.example"}`,
		"approvals/apr_3.json":      `{"approval_id":"apr_3","status":"pending","site":"bank.example"}`,
		"task-runs/run_1/meta.json": `{"run_id":"run_1","status":"COMPLETED","goal":"pay bank.example"}`,
		"handoffs/open/hof_1":       "", "handoffs/open/hof_2": "", "approvals/open/apr_1": "", "approvals/open/apr_2": "", "approvals/open/apr_3": "", "task-runs/open/run_1": "",
	} {
		if err := home.Write(name, []byte(record)); err != nil {
			t.Fatal(err)
		}
	}
	wish, err := forget.Plan(home, "bank.example")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(wish.Open)
	if want := []string{"apr_1", "apr_3", "hof_1"}; !slices.Equal(wish.Open, want) || len(wish.Records) != 6 {
		t.Errorf("of %v these are not over: %v", wish.Records, wish.Open)
	}
}
