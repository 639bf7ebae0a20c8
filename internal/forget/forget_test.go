package forget_test

import (
	"errors"
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
