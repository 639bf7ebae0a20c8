package page_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/page"
	"tapin/internal/secret"
)

// setter answers with cookies word for word: Go's own would mend them.
func setter(cookies ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Set-Cookie"] = cookies
		_, _ = io.WriteString(w, "<!doctype html><title>set</title>")
	}
}

// unlike lets a jar name what it holds of a cookie.
func unlike(c browser.Cookie) string {
	key := "-"
	if c.Partition != nil {
		key = fmt.Sprintf("%s/%v", c.Partition.TopLevelSite, c.Partition.CrossSiteAncestor)
	}
	return fmt.Sprintf("%s@%s%s %v %v %q %s %s %v %s %v", c.Name, c.Domain, c.Path, c.HTTPOnly, c.Secure, c.SameSite, c.Priority, c.SourceScheme, c.SourcePort > 0, key, c.Expires > 0)
}

func TestEveryKindOfCookieSurvivesTheTrip(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	long := strings.Repeat("4", 4096-len("long"))
	later := time.Now().Add(72 * time.Hour).UTC().Format(http.TimeFormat)
	open := newBank(t, false, map[string]http.HandlerFunc{
		"/set": setter("zeta=session", "alpha=later; Expires="+later, "deep=1; Path=/deep", "script=1; HttpOnly",
			"lax=1; SameSite=Lax", "strict=1; SameSite=Strict", "high=1; Priority=High", "low=1; Priority=Low",
			"shared=1; Domain=bank.test", "unicode=späß☃🎉", `quoted="a b"`, "empty=", "=nameless", "long="+long, "gone=1; Max-Age=0", "far=1; Max-Age=99999999999"),
	})
	sealed := newBank(t, true, map[string]http.HandlerFunc{
		"/set": setter("secure=1; Secure", "none=1; Secure; SameSite=None", "__Host-id=1; Secure; Path=/", "__Secure-id=1; Secure; Domain=bank.test",
			"mine=1; Secure; Partitioned; Path=/"),
		"/framed": setter("theirs=1; Secure; SameSite=None; Partitioned; Path=/", "__Host-chip=1; Secure; SameSite=None; Partitioned; Path=/"),
	})
	sealed.routes["/embed"] = document(`<!doctype html><title>embed</title><iframe src="` + sealed.at("bank.test") + `/framed"></iframe>`)
	sealed.routes["/reframe"] = document(`<!doctype html><title>embed</title><iframe src="` + sealed.at("bank.test") + `/seen"></iframe>`)

	a := newVisitor(t, open, sealed)
	for _, url := range []string{open.at("bank.test") + "/set", open.at("app.bank.test") + "/set", open.at("127.0.0.1") + "/set", sealed.at("bank.test") + "/set", sealed.at("shop.test") + "/embed"} {
		a.open(ctx, t, url)
	}
	st := a.read(ctx, t)
	var kinds []string
	for _, c := range st.Cookies {
		kinds = append(kinds, unlike(c))
	}
	for _, want := range []string{
		`alpha@bank.test/ false false "" Medium NonSecure true - true`,
		`deep@bank.test/deep false false "" Medium NonSecure true - false`,
		`script@app.bank.test/ true false "" Medium NonSecure true - false`,
		`strict@127.0.0.1/ false false "Strict" Medium NonSecure true - false`,
		`high@bank.test/ false false "" High NonSecure true - false`,
		`shared@.bank.test/ false false "" Medium NonSecure true - false`,
		`@bank.test/ false false "" Medium NonSecure true - false`,
		`none@bank.test/ false true "None" Medium Secure true - false`,
		`__Secure-id@.bank.test/ false true "" Medium Secure true - false`,
		`mine@bank.test/ false true "" Medium Secure true https://bank.test/false false`,
		`theirs@bank.test/ false true "None" Medium Secure true https://shop.test/true false`,
	} {
		if !strings.Contains("\n"+strings.Join(kinds, "\n")+"\n", "\n"+want+"\n") {
			t.Errorf("the site's cookie is not read as %s; there are\n%s", want, strings.Join(kinds, "\n"))
		}
	}

	// What each browser sends, where it matters.
	trip := func(v *visitor) map[string][]string {
		open.heard()
		sealed.heard()
		out := map[string][]string{}
		for _, url := range []string{open.at("bank.test") + "/seen", open.at("bank.test") + "/deep/seen", open.at("app.bank.test") + "/seen", open.at("127.0.0.1") + "/seen",
			sealed.at("bank.test") + "/seen", sealed.at("login.bank.test") + "/seen", sealed.at("shop.test") + "/reframe"} {
			v.open(ctx, t, url)
			out[url] = append(open.heard(), sealed.heard()...)
		}
		return out
	}
	sent := trip(a)
	st = a.read(ctx, t) // the trip gave no cookies, but moved the expiry of none either
	b := newVisitor(t, open, sealed)
	conns := open.conns.Load() + sealed.conns.Load()
	if got := b.restore(ctx, t, st); got.Cookies != len(st.Cookies) || got.Refused != 0 || len(got.Skipped) != 0 {
		t.Errorf("of %d cookies: %+v", len(st.Cookies), got)
	}
	if again := b.read(ctx, t); !cmp.Equal(st, again, revealed) {
		t.Errorf("the jar reads differently: %s", cmp.Diff(st, again, revealed))
	}
	if now := open.conns.Load() + sealed.conns.Load(); now != conns {
		t.Errorf("restoring and reading made %d connections", now-conns)
	}
	if got := trip(b); !cmp.Equal(sent, got) {
		t.Errorf("the sites are sent something else: %s", cmp.Diff(sent, got))
	}
	if deep := strings.Join(sent[open.at("bank.test")+"/deep/seen"], ""); !strings.HasPrefix(deep, "/deep/seen deep=1; zeta=session; alpha=later") {
		t.Errorf("the order is not that in which they came: %.80s", deep)
	}
	if framed := sent[sealed.at("shop.test")+"/reframe"]; !strings.Contains(strings.Join(framed, "\n"), "theirs=1") {
		t.Errorf("the frame of another site was sent %q", framed)
	}
}

func TestOneInvalidCookieAmongAThousandCostsOnlyItself(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	v := newVisitor(t)
	var st browser.State
	for i := range 1000 {
		st.Cookies = append(st.Cookies, browser.Cookie{
			Name: fmt.Sprintf("n%d", i*7919%1000), Value: secret.New(fmt.Sprint(i)), Domain: fmt.Sprintf("h%d.test", i%10), Path: "/",
			Priority: "Medium", SourceScheme: "NonSecure", SourcePort: 80,
		})
	}
	want := st.Cookies
	st.Cookies = append(append(append([]browser.Cookie{}, want[:500]...), browser.Cookie{Name: "in\nvalid", Value: secret.New("x"), Domain: "h1.test", Path: "/"}), want[500:]...)
	if got := v.restore(ctx, t, st); !cmp.Equal(got, page.Restored{Cookies: 1000, Refused: 1, Skipped: []string{"1 cookies were refused by the browser"}}) {
		t.Errorf("restored %+v", got)
	}
	if got := v.read(ctx, t).Cookies; !cmp.Equal(got, want, revealed) {
		t.Errorf("the jar is not what was put in, in its order: %s", cmp.Diff(want, got, revealed))
	}
	refused, err := browser.SetCookies(ctx, v.inst.Conn(), v.inst.Ref().Context, st.Cookies[490:510])
	if err != nil || !cmp.Equal(refused, []string{"in\nvalid"}) {
		t.Errorf("refused are %q, %v", refused, err)
	}
}
