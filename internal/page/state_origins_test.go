package page_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

// short names origins without their port.
func short(b *bank, list []string) []string {
	out := []string{}
	for _, origin := range list {
		out = append(out, strings.TrimSuffix(strings.TrimPrefix(origin, "http://"), ":"+b.port()))
	}
	return out
}

func TestTheOriginsOfEveryPageAreRemembered(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	site := newBank(t, false, nil)
	site.routes = map[string]http.HandlerFunc{
		"/frames": document(`<!doctype html><title>frames</title><iframe src="` + site.at("login.bank.test") + `/in"></iframe><iframe src="` + site.at("shop.test") + `/in"></iframe>
			<iframe srcdoc="none"></iframe><iframe sandbox src="` + site.at("bank.test") + `/sandboxed"></iframe>`),
		"/in": document(`<!doctype html><title>in</title><script>localStorage.setItem('in', location.host.split(':')[0]); sessionStorage.setItem('in', 'frame')</script>`),
		"/away": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, site.at("other.test")+"/", http.StatusFound)
		},
	}
	v := newVisitor(t, site)
	v.open(ctx, t, site.at("localhost")+"/away")
	tab := v.open(ctx, t, site.at("app.bank.test")+"/frames")
	got := short(site, v.tabs.Origins())
	// A frame of another site has a storage of its own under this page, which
	// nothing but this page can reach. A redirect shows no page.
	if want := []string{"app.bank.test", "bank.test", "login.bank.test", "other.test"}; !cmp.Equal(got, want) {
		t.Errorf("remembered are %q, want %q", got, want)
	}
	st := v.read(ctx, t)
	if len(st.Origins) != 1 || short(site, []string{st.Origins[0].Origin})[0] != "login.bank.test" || !cmp.Equal(st.Origins[0].Session, items("in", "frame"), revealed) {
		t.Errorf("%d origins were read, the frame's own storage among them: %v", len(st.Origins), st.Origins)
	}
	// What a popup shows counts too.
	tab.Eval(ctx, t, `void open("`+site.at("127.0.0.1")+`/popup")`)
	testwait.For(t, "the popup", func() bool { return slices.Contains(v.tabs.Origins(), site.at("127.0.0.1")) })
	testwait.For(t, "being told of it", func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		return slices.Contains(v.origins, site.at("127.0.0.1"))
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	heard := slices.Sorted(slices.Values(v.origins))
	if !cmp.Equal(heard, v.tabs.Origins()) {
		t.Errorf("told of %q, remembered %q: each once", heard, v.tabs.Origins())
	}
}

func TestAfterARestartNothingIsForgottenAndNoHelperIsLeft(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := newBank(t, false, nil)
	v := newVisitor(t, site)
	v.open(ctx, t, site.at("shop.test")+"/").Eval(ctx, t, "localStorage.setItem('cart', 'full')")
	v.open(ctx, t, site.at("bank.test")+"/").Eval(ctx, t, "localStorage.setItem('token', 'set')")
	want := v.read(ctx, t)
	seen := v.tabs.Origins()

	// A process that dies in the middle of a read leaves its helper.
	if err := v.inst.Conn().Root().Call(ctx, "Target.createTarget", map[string]any{"url": "about:blank#left", "hidden": true, "browserContextId": v.inst.Ref().Context}, nil); err != nil {
		t.Fatal(err)
	}
	v.tabs.Close()
	next, err := v.again(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = next.Release() })
	tabs, err := page.Open(ctx, next, &page.Options{Origins: append([]string{"not an origin", "file:///etc"}, seen...), OnOrigin: func(o string) { t.Errorf("%s was told as new", o) }})
	if err != nil {
		t.Fatal(err)
	}
	defer tabs.Close()
	v.inst, v.tabs = next, tabs
	if n := len(tabs.List()); n != 1 {
		t.Errorf("there are %d tabs", n)
	}
	testwait.For(t, "the end of the helper", func() bool { return listTargets(ctx, t, v) == 1 })
	if got := v.read(ctx, t); !cmp.Equal(got, want, revealed) {
		t.Errorf("the state reads differently: %s", cmp.Diff(want, got, revealed))
	}
}

func TestAPageThatAnswersNothingIsReadAroundOrNamed(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	site := newBank(t, false, nil)
	v := newVisitor(t, site)
	v.open(ctx, t, site.at("shop.test")+"/").Eval(ctx, t, "localStorage.setItem('cart', 'full')")
	tab := v.open(ctx, t, site.at("bank.test")+"/")
	tab.Eval(ctx, t, "localStorage.setItem('token', 'set')")
	if err := tab.Session.Send(ctx, "Runtime.evaluate", map[string]any{"expression": "alert('wait')"}); err != nil {
		t.Fatal(err)
	}
	front, err := v.tabs.Front(ctx)
	if err != nil {
		t.Fatal(err)
	}
	testwait.For(t, "the dialog", func() bool { return front.Dialog() != nil })
	st, skipped, err := v.tabs.ReadState(ctx)
	if err != nil {
		t.Fatal(err)
	}
	find := func(name string) bool {
		return slices.ContainsFunc(st.Origins, func(o browser.OriginState) bool { return o.Origin == site.at(name) && len(o.Local) == 1 })
	}
	named := slices.ContainsFunc(skipped, func(s string) bool { return strings.HasPrefix(s, site.at("bank.test")+": ") })
	if !find("shop.test") || find("bank.test") == named {
		t.Errorf("read %d origins, skipped %q", len(st.Origins), skipped)
	}
	if err := front.Answer(ctx, true, ""); err != nil {
		t.Fatal(err)
	}
	if st := v.read(ctx, t); len(st.Origins) != 2 {
		t.Errorf("afterwards %d origins were read", len(st.Origins))
	}
}

func TestStateIsNotRestoredOverAnOpenPage(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site := newBank(t, false, nil)
	v := newVisitor(t, site)
	v.open(ctx, t, site.at("bank.test")+"/")
	_, err := v.tabs.Restore(ctx, browser.State{Origins: []browser.OriginState{{Origin: site.at("bank.test"), Local: items("a", "b")}}})
	if err == nil || !strings.Contains(err.Error(), "a page is open already") {
		t.Errorf("restoring gave %v", err)
	}
	if got := v.open(ctx, t, site.at("bank.test")+"/").Eval(ctx, t, "localStorage.length"); got != "0" {
		t.Errorf("it has %s keys", got)
	}
}
