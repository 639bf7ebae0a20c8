package page_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/secret"
)

// oldDatabase and newDatabases are what the engine would write.
const (
	oldDatabase  = `{"name":"auth","version":3,"stores":[{"name":"s","keyPath":null,"autoIncrement":true,"indexes":[],"next":7,"rows":[["k",{"o":["at",{"d":5}]}]]}]}`
	newDatabases = `[{"name":"auth","version":2,"stores":[{"name":"t","keyPath":"id","autoIncrement":false,"indexes":[{"name":"i","keyPath":"x","unique":true,"multiEntry":false}],"rows":[[{"o":["id",1,"x","y"]}]]}]}]`
)

// customer is a browser with something of two origins in it, the first one's in
// cookies of every reach.
func customer(ctx context.Context, t *testing.T) (*visitor, *bank, string) {
	t.Helper()
	site := newBank(t, false, map[string]http.HandlerFunc{
		"/set":   setter("zeta=1; HttpOnly", "alpha=2; Max-Age=9999; Priority=High", "shared=3; Domain=bank.test", "deep=4; Path=/deep"),
		"/other": setter("theirs=1; Max-Age=9999"),
	})
	v := newVisitor(t, site)
	v.open(ctx, t, site.at("bank.test")+"/other")
	v.open(ctx, t, site.at("shop.test")+"/other").Eval(ctx, t, "localStorage.setItem('cart', 'full')")
	v.open(ctx, t, site.at("app.bank.test")+"/set").Eval(ctx, t, `(async () => { `+openDB+` localStorage.setItem('token', 'old'); localStorage.setItem('half', '\ud800'); sessionStorage.setItem('tab', 'old')
		;(await open('auth', 3, db => { const s = db.createObjectStore('s', {autoIncrement: true}); s.put({at: new Date(5)}, 'k'); s.put(0, 6); s.delete(6) })).close() })()`)
	return v, site, site.at("app.bank.test")
}

// replacing is what every test puts in the place of the customer's.
func replacing() ([]browser.Cookie, browser.OriginState) {
	return []browser.Cookie{
			{Name: "shared", Value: secret.New("new"), Domain: ".bank.test", Path: "/", HTTPOnly: true, SameSite: "Strict"},
			{Name: "fresh", Value: secret.New("new"), Domain: "app.bank.test", Path: "/", Expires: 4e9},
			{Name: "late", Value: secret.New("old"), Domain: "app.bank.test", Path: "/", Expires: 4},
		},
		browser.OriginState{Local: items("only", "new"), Session: items(), Databases: []byte(newDatabases)}
}

func TestAnOriginIsReadByItself(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	v, site, origin := customer(ctx, t)
	cookies, st, err := v.tabs.ReadOrigin(ctx, origin)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range cookies {
		names = append(names, c.Name)
	}
	// The cookie of bank.test alone is not app.bank.test's.
	if want := []string{"deep", "zeta", "alpha", "shared"}; !cmp.Equal(names, want) {
		t.Errorf("its cookies are %q, want %q", names, want)
	}
	want := browser.OriginState{Origin: origin, Local: items("half", "\xed\xa0\x80", "token", "old"), Session: items("tab", "old"), Databases: []byte("[" + oldDatabase + "]")}
	if !cmp.Equal(st, want, revealed) {
		t.Errorf("%s", cmp.Diff(want, st, revealed))
	}
	if _, st, err = v.tabs.ReadOrigin(ctx, site.at("shop.test")); err != nil || st.Session != nil || len(st.Local) != 1 {
		t.Errorf("an origin that is not loaded: %d keys, %v", len(st.Local), err)
	}
	for _, bad := range []string{"", "bank.test", "https://bank.test/", "HTTPS://bank.test", "javascript:0", "file:///etc"} {
		if _, _, err := v.tabs.ReadOrigin(ctx, bad); !errors.Is(err, fault.InvalidRequest) {
			t.Errorf("%q gave %v", bad, err)
		}
	}
}

func TestReplacingAnOriginIsStrictAndTouchesNoOther(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	v, site, origin := customer(ctx, t)
	cookies, st := replacing()
	site.heard()
	got, err := v.tabs.ReplaceOrigin(ctx, origin, cookies, st)
	if err != nil || got != (page.Replaced{Cookies: 2, StorageKeys: 1}) {
		t.Fatalf("replaced %+v, %v", got, err)
	}
	if heard := site.heard(); len(heard) > 0 {
		t.Errorf("the site heard %q", heard)
	}
	left, now, err := v.tabs.ReadOrigin(ctx, origin)
	if err != nil || len(left) != 2 || left[0].Name != "shared" || left[0].SameSite != "Strict" || left[1].Name != "fresh" {
		t.Errorf("the cookies are %+v, %v", left, err)
	}
	st.Origin = origin
	if !cmp.Equal(now, st, revealed) {
		t.Errorf("%s", cmp.Diff(st, now, revealed))
	}
	v.open(ctx, t, site.at("app.bank.test")+"/deep/seen")
	v.open(ctx, t, site.at("bank.test")+"/seen")
	if heard := site.heard(); !cmp.Equal(heard, []string{"/deep/seen shared=new; fresh=new", "/seen theirs=1; shared=new"}) {
		t.Errorf("the site is sent %q", heard)
	}
	if got := v.open(ctx, t, site.at("shop.test")+"/").Eval(ctx, t, "localStorage.cart + document.cookie"); got != "fulltheirs=1" {
		t.Errorf("the other origin has %q", got)
	}
}

func TestPartsThatAreNotGivenAreLeftAlone(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	v, _, origin := customer(ctx, t)
	cookies, before, err := v.tabs.ReadOrigin(ctx, origin)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		cookies []browser.Cookie
		st      browser.OriginState
		change  func(*[]browser.Cookie, *browser.OriginState)
	}{
		"nothing":   {nil, browser.OriginState{}, func(*[]browser.Cookie, *browser.OriginState) {}},
		"cookies":   {[]browser.Cookie{}, browser.OriginState{}, func(c *[]browser.Cookie, _ *browser.OriginState) { *c = []browser.Cookie{} }},
		"local":     {nil, browser.OriginState{Local: items()}, func(_ *[]browser.Cookie, st *browser.OriginState) { st.Local = items() }},
		"session":   {nil, browser.OriginState{Session: items("a", "b")}, func(_ *[]browser.Cookie, st *browser.OriginState) { st.Session = items("a", "b") }},
		"databases": {nil, browser.OriginState{Databases: []byte{}}, func(_ *[]browser.Cookie, st *browser.OriginState) { st.Databases = []byte{} }},
	} {
		if _, err := v.tabs.ReplaceOrigin(ctx, origin, cookies, before); err != nil {
			t.Fatal(err)
		}
		wantCookies, want := cookies, before
		tt.change(&wantCookies, &want)
		if _, err := v.tabs.ReplaceOrigin(ctx, origin, tt.cookies, tt.st); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		gotCookies, got, err := v.tabs.ReadOrigin(ctx, origin)
		if err != nil || !cmp.Equal(gotCookies, wantCookies, revealed) || !cmp.Equal(got, want, revealed) {
			t.Errorf("%s alone: %v %s %s", name, err, cmp.Diff(wantCookies, gotCookies, revealed), cmp.Diff(want, got, revealed))
		}
	}
}

func TestAReplacementThatFailsPutsEverythingBack(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	v, site, origin := customer(ctx, t)
	before := v.read(ctx, t)
	same := func(t *testing.T, err error, code fault.Code) {
		t.Helper()
		if err == nil || code != "" && !errors.Is(err, code) {
			t.Errorf("the error is %v, want %s", err, code)
		}
		if f := fault.Of(err); f.Data["restored"] != true && f.Code != fault.OriginMismatch && f.Code != fault.PayloadTooLarge {
			t.Errorf("the error does not say that all is back: %v", err)
		}
		if text := fmt.Sprintf("%v %+v", err, fault.Of(err)); strings.Contains(text, "canary") {
			t.Errorf("the error holds a value: %s", text)
		}
		if after := v.read(ctx, t); !cmp.Equal(before, after, revealed) {
			t.Errorf("not everything is back: %s", cmp.Diff(before, after, revealed))
		}
	}
	steps := []string{"remembered", "stored", "cookies set", "compared"}
	var passed []string
	v.tabs.FaultAt(func(step string) error { passed = append(passed, step); return errors.New("stop here") })
	cookies, st := replacing()
	_, err := v.tabs.ReplaceOrigin(ctx, origin, cookies, st)
	if err == nil || !cmp.Equal(passed, steps[:1]) {
		t.Fatalf("passed %q, %v", passed, err)
	}
	for _, at := range steps[1:] {
		v.tabs.FaultAt(func(step string) error {
			if step == at {
				return errors.New("the test said so")
			}
			return nil
		})
		_, err := v.tabs.ReplaceOrigin(ctx, origin, cookies, st)
		same(t, err, fault.InvalidRequest)

		// Whoever asked may go away at any step.
		impatient, cancel := context.WithCancel(ctx)
		v.tabs.FaultAt(func(step string) error {
			if step == at {
				cancel()
			}
			return nil
		})
		_, err = v.tabs.ReplaceOrigin(impatient, origin, cookies, st)
		same(t, err, fault.Busy)
		cancel()
	}
	v.tabs.FaultAt(nil)

	good, _ := replacing()
	for name, tt := range map[string]struct {
		cookies []browser.Cookie
		st      browser.OriginState
		code    fault.Code
	}{
		"an invalid cookie":             {append(good, browser.Cookie{Name: "a;b", Value: secret.New("canary"), Domain: "app.bank.test"}), st, fault.InvalidRequest},
		"a cookie dropped without word": {append(good, browser.Cookie{Name: "x", Value: secret.New("canary"), Domain: "app.bank.test", SameSite: "None"}), st, fault.InvalidRequest},
		"a cookie of another":           {append(good, browser.Cookie{Name: "x", Value: secret.New("canary"), Domain: "shop.test"}), st, fault.OriginMismatch},
		"a cookie for TLS":              {append(good, browser.Cookie{Name: "x", Value: secret.New("canary"), Domain: "app.bank.test", Secure: true}), st, fault.OriginMismatch},
		"storage without room":          {good, browser.OriginState{Local: items("a", "canary", "b", strings.Repeat("x", 6<<20))}, ""}, // or the machine is too slow for so much
		"storage of another origin":     {good, browser.OriginState{Origin: site.at("shop.test"), Local: items()}, fault.OriginMismatch},
		"databases that are none":       {good, browser.OriginState{Local: items(), Databases: []byte(`"canary`)}, fault.InvalidRequest},
		"a database that contradicts itself": {good, browser.OriginState{Databases: []byte(
			`[{"name":"fine","version":1,"stores":[]},{"name":"x","version":1,"stores":[{"name":"canary","keyPath":"id","autoIncrement":false,"indexes":[],"rows":[[{"o":[]}]]}]}]`)}, fault.InvalidRequest},
		"more than there may be": {good, browser.OriginState{Local: items("a", strings.Repeat("x", 51<<20))}, fault.PayloadTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := v.tabs.ReplaceOrigin(ctx, origin, tt.cookies, tt.st)
			same(t, err, tt.code)
		})
	}
	t.Run("a page that does not let go of its database", func(t *testing.T) {
		_, tab := v.front(ctx, t)
		tab.Eval(ctx, t, `new Promise(yes => { const r = indexedDB.open('auth'); r.onsuccess = () => { window.held = r.result; held.onclose = () => { window.was = 'closed' }; yes('held') } })`)
		v.tabs.FaultAt(func(step string) error {
			if step == "stored" {
				return errors.New("the test said so")
			}
			return nil
		})
		_, err := v.tabs.ReplaceOrigin(ctx, origin, good, st)
		v.tabs.FaultAt(nil)
		same(t, err, fault.InvalidRequest)
		if got := tab.Eval(ctx, t, "window.was"); got != "closed" {
			t.Errorf("its connection is %s", got)
		}
	})
	t.Run("the page goes away in the middle", func(t *testing.T) {
		front, _ := v.front(ctx, t)
		v.tabs.FaultAt(func(step string) error {
			if step == "stored" {
				if _, err := front.Reload(ctx, page.WaitLoad); err != nil {
					t.Error(err)
				}
				return errors.New("and then it failed")
			}
			return nil
		})
		_, err := v.tabs.ReplaceOrigin(ctx, origin, good, st)
		v.tabs.FaultAt(nil)
		if f := fault.Of(err); f.Data["restored"] != true {
			t.Errorf("the error is %v", err)
		}
	})
	// And what failed can be done right afterwards.
	if _, err := v.tabs.ReplaceOrigin(ctx, origin, good, st); err != nil {
		t.Error(err)
	}
}

func TestSessionStorageNeedsItsTab(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	v, site, origin := customer(ctx, t)
	v.open(ctx, t, site.at("other.test")+"/")
	before := v.read(ctx, t)
	if _, err := v.tabs.ReplaceOrigin(ctx, origin, nil, browser.OriginState{Local: items("a", "b"), Session: items()}); !errors.Is(err, fault.OriginMismatch) {
		t.Errorf("another origin in front gave %v", err)
	}
	if after := v.read(ctx, t); !cmp.Equal(before, after, revealed) {
		t.Errorf("something changed: %s", cmp.Diff(before, after, revealed))
	}
	// Without that part the origin need not be open at all.
	site.heard()
	if got, err := v.tabs.ReplaceOrigin(ctx, origin, nil, browser.OriginState{Local: items("a", "b")}); err != nil || got.StorageKeys != 1 {
		t.Errorf("replaced %+v, %v", got, err)
	}
	// And a tab that shows nothing yet can be given it.
	fresh := newVisitor(t, site)
	if _, err := fresh.tabs.ReplaceOrigin(ctx, origin, nil, browser.OriginState{Session: items("tab", "given")}); err != nil {
		t.Fatal(err)
	}
	if heard := site.heard(); len(heard) > 0 {
		t.Errorf("the site heard %q", heard)
	}
	if got := fresh.open(ctx, t, origin+"/").Eval(ctx, t, "sessionStorage.tab + history.length"); got != "given2" {
		t.Errorf("the tab has %q", got)
	}
}
