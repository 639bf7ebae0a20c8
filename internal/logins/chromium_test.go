package logins

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/testwait"
)

// TestARealBrowserIsLoggedInAgain has a site log a browser in with every kind
// of cookie there is, and takes the login to other browsers: by way of the
// saved file, and by way of an envelope.
func TestARealBrowserIsLoggedInAgain(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/login" {
			for _, c := range []string{
				"session=1; Path=/; HttpOnly", "lax=2; Path=/; SameSite=Lax; Max-Age=86400; Priority=High", "strict=3; Path=/; SameSite=Strict",
				"__Host-id=4; Path=/; Secure; HttpOnly", "__Secure-a=5; Path=/; Secure; SameSite=None", "deep=6; Path=/account", "odd=\"a b,c\"; Path=/",
				"__Host-parted=7; Path=/; Secure; SameSite=None; Partitioned",
			} {
				w.Header().Add("Set-Cookie", c)
			}
		}
		var seen []string
		for _, c := range r.Cookies() {
			seen = append(seen, c.String())
		}
		slices.Sort(seen)
		_, _ = fmt.Fprintf(w, "<!doctype html><title>site</title><pre>%q</pre>", seen)
	}))
	t.Cleanup(site.Close)

	first := launch(t, site, nil)
	tab := browsertest.NewTab(ctx, t, first)
	tab.Open(ctx, t, site.URL+"/login")
	tab.Open(ctx, t, site.URL+"/account")
	loggedIn := tab.Eval(ctx, t, `document.querySelector('pre').textContent`)
	jar := jarOf(t, first)
	if len(jar) != 8 {
		t.Fatalf("the browser kept %d cookies of 8: %v", len(jar), loggedIn)
	}

	r := newRoom(t, "")
	_, _, err := r.Checkout(ctx, "site", "ses_1")
	must(t, err)
	_, err = r.Save(ctx, "site", "ses_1", browser.State{Cookies: jar, Origins: []browser.OriginState{{Origin: site.URL}}}, SaveOptions{URL: site.URL})
	must(t, err)
	must(t, r.Release(ctx, "site", "ses_1"))
	saved, found, err := r.Checkout(ctx, "site", "ses_2")
	if err != nil || !found {
		t.Fatalf("found %v, %v", found, err)
	}
	exported, err := Export(browser.State{Cookies: jar}, ExportOptions{Origin: site.URL})
	must(t, err)
	if exported.Skipped != 0 || len(exported.Envelope.Cookies) != len(jar) {
		t.Errorf("the envelope has %d cookies of %d, %d were skipped", len(exported.Envelope.Cookies), len(jar), exported.Skipped)
	}
	for way, state := range map[string]browser.State{"the saved file": saved, "an envelope": exported.Envelope.State()} {
		inst := launch(t, site, &state)
		if diff := gocmp.Diff(plain(browser.State{Cookies: jar}), plain(browser.State{Cookies: jarOf(t, inst)})); diff != "" {
			t.Errorf("by way of %s: %s", way, diff)
		}
		tab := browsertest.NewTab(ctx, t, inst)
		tab.Open(ctx, t, site.URL+"/account")
		if got := tab.Eval(ctx, t, `document.querySelector('pre').textContent`); got != loggedIn {
			t.Errorf("by way of %s the site sees %s, not %s", way, got, loggedIn)
		}
	}
}

func launch(t *testing.T, site *httptest.Server, state *browser.State) browser.Instance {
	t.Helper()
	run, err := os.MkdirTemp("", "tapin") // short enough for a socket
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(run) })
	provider := local.New(run, 1, nil)
	inst, err := provider.Create(browsertest.Context(t), browser.Spec{
		ID: "ses_login-1", State: state, KeepUntil: testwait.Late(), Policy: browsertest.Policy(site),
	})
	must(t, err)
	t.Cleanup(func() { browsertest.End(t, provider, inst.Ref()) })
	inst.Conn().Dispatch()
	return inst
}

func jarOf(t *testing.T, inst browser.Instance) []browser.Cookie {
	t.Helper()
	jar, err := browser.Cookies(browsertest.Context(t), inst.Conn(), inst.Ref().Context)
	must(t, err)
	slices.SortFunc(jar, func(a, b browser.Cookie) int { return cmp.Compare(a.Name, b.Name) })
	return jar
}
