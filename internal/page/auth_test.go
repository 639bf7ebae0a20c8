package page_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
	"tapin/internal/testwait"
)

// guarded is a page behind a password.
func guarded(realm, user, password, title string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="`+realm+`"`)
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, "<title>no entry</title>")
			return
		}
		_, _ = io.WriteString(w, "<title>"+title+" by "+r.Method+"</title>")
	}
}

func TestASiteThatWantsAPasswordIsAQuestion(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{
		"/":        document(`<title>home</title><form method=post action="/post"><button>go</button></form>`),
		"/vault":   guarded("the vault", "ann", "right", "inside"),
		"/further": guarded("the vault", "ann", "right", "further"),
		"/post":    guarded("the till", "bob", "right", "paid"),
		"/away":    func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/vault", http.StatusFound) },
	})
	tab := s.open(ctx, t, "/")
	if err := tab.Authenticate(ctx, "ann", secret.New("right")); !errors.Is(err, fault.NotFound) {
		t.Fatalf("a password nobody wants gave %v", err)
	}
	nav, err := tab.Navigate(ctx, s.URL+"/away", "")
	if err != nil || nav.Status != http.StatusUnauthorized || nav.Title != "no entry" {
		t.Fatalf("opening gave %+v, %v", nav, err)
	}
	want := []page.Question{{Kind: page.AskHTTPAuth, Origin: s.URL, Realm: "the vault"}}
	if diff := cmp.Diff(want, tab.Pending()); diff != "" {
		t.Fatal(diff)
	}
	err = tab.Authenticate(ctx, "ann", secret.New("wrong-canary"))
	if !errors.Is(err, fault.NavigationFailed) || strings.Contains(err.Error(), "canary") {
		t.Fatalf("a wrong password gave %v", err)
	}
	if diff := cmp.Diff(want, tab.Pending()); diff != "" {
		t.Fatalf("a wrong password does not ask again: %s", diff)
	}
	if err := tab.Authenticate(ctx, "ann", secret.New("right")); err != nil {
		t.Fatal(err)
	}
	if nav, err := tab.Here(ctx); err != nil || nav.Title != "inside by GET" || len(tab.Pending()) != 0 {
		t.Fatalf("with the password the page is %+v, %v, and asks %+v", nav, err, tab.Pending())
	}
	if nav, err := tab.Navigate(ctx, s.URL+"/further", ""); err != nil || nav.Title != "further by GET" {
		t.Fatalf("the password is not kept: %+v, %v", nav, err)
	}

	// A form that is sent to such a place, by a click of the page's own.
	tab = s.open(ctx, t, "/")
	s.eval(ctx, t, tab, `void document.querySelector("button").click()`)
	testwait.For(t, "the question of a form's answer", func() bool { return len(tab.Pending()) == 1 })
	if got := tab.Pending()[0]; got.Kind != page.AskHTTPAuth || got.Origin != s.URL {
		t.Fatalf("the question is %+v", got)
	}
	if err := tab.Authenticate(ctx, "bob", secret.New("right")); err != nil {
		t.Fatal(err)
	}
	if nav, err := tab.Here(ctx); err != nil || nav.Title != "paid by POST" {
		t.Fatalf("the form's answer is %+v, %v", nav, err)
	}
}

func TestALoginCanBeDeclinedOrLeft(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	s := perform(t, page.Look{}, map[string]http.HandlerFunc{
		"/":      document(`<title>home</title>`),
		"/vault": guarded("the vault", "ann", "right", "inside"),
	})
	tab := s.front(ctx, t)
	open := func() {
		t.Helper()
		if nav, err := tab.Navigate(ctx, s.URL+"/vault", ""); err != nil || nav.Status != http.StatusUnauthorized || len(tab.Pending()) != 1 {
			t.Fatalf("opening gave %+v, %v", nav, err)
		}
	}
	open()
	if err := tab.DeclineLogin(); err != nil {
		t.Fatal(err)
	}
	if nav, err := tab.Here(ctx); err != nil || nav.Title != "no entry" || len(tab.Pending()) != 0 {
		t.Fatalf("declined, the page is %+v, %v, and asks %+v", nav, err, tab.Pending())
	}
	if err := tab.DeclineLogin(); !errors.Is(err, fault.NotFound) {
		t.Fatalf("declining twice gave %v", err)
	}
	open()
	s.open(ctx, t, "/")
	if got := tab.Pending(); len(got) != 0 {
		t.Fatalf("a page that was left still asks %+v", got)
	}
}
