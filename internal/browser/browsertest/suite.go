package browsertest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"tapin/internal/browser"
	"tapin/internal/cdp"
	"tapin/internal/egress"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/store"
	"tapin/internal/testwait"
)

// Subject is a provider under test.
type Subject struct {
	// Provider is the one under test; Next is one as a following process would
	// make it, for the same browsers.
	Provider browser.Provider
	Next     func() browser.Provider
	// Sever breaks the connection of an instance the way it breaks in life, and
	// leaves the browser alone.
	Sever func(browser.Instance)
	// Canary is a secret of the subject's configuration that no error may hold.
	Canary string
	// Guarded says that the provider enforces the network policy.
	Guarded bool
}

// Run proves a provider. Each test gets a subject of its own.
func Run(t *testing.T, subject func(t *testing.T) Subject) {
	site := Site(t)
	create := func(t *testing.T, s Subject, spec browser.Spec) browser.Instance {
		t.Helper()
		spec.ID = store.NewID("ses") + "-1"
		spec.KeepUntil = testwait.Late()
		spec.Policy = Policy(site)
		inst, err := s.Provider.Create(Context(t), spec)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { End(t, s.Next(), inst.Ref()) })
		return inst
	}

	t.Run("a new browser opens a page", func(t *testing.T) {
		t.Parallel()
		s, ctx := subject(t), Context(t)
		inst := create(t, s, browser.Spec{})
		inst.Conn().Dispatch()
		tab := NewTab(ctx, t, inst)
		tab.Open(ctx, t, site.URL)
		if got := tab.Eval(ctx, t, "document.title"); got != "plain" {
			t.Fatalf("the title is %q", got)
		}
		if ref := inst.Ref(); ref.Provider != s.Provider.Name() || ref.ID == "" {
			t.Fatalf("the ref does not find it again: %+v", ref)
		}
	})

	t.Run("a saved login is there with the first request", func(t *testing.T) {
		t.Parallel()
		s, ctx := subject(t), Context(t)
		inst := create(t, s, browser.Spec{State: &browser.State{Cookies: []browser.Cookie{
			{Name: "sid", Value: secret.New("kept"), Domain: "127.0.0.1", Path: "/", HTTPOnly: true, SameSite: "Lax"},
		}}})
		inst.Conn().Dispatch()
		tab := NewTab(ctx, t, inst)
		tab.Open(ctx, t, site.URL+"/cookies")
		if got := tab.Eval(ctx, t, "document.getElementById('c').textContent"); got != "sid=kept" {
			t.Fatalf("the server got the cookies %q", got)
		}
		cookies, err := browser.Cookies(ctx, inst.Conn(), inst.Ref().Context)
		if err != nil || len(cookies) != 1 || !cookies[0].HTTPOnly || cookies[0].Expires != 0 || cookies[0].Domain != "127.0.0.1" || cookies[0].SameSite != "Lax" {
			t.Fatalf("the jar has %+v, %v", cookies, err)
		}
	})

	t.Run("two browsers share nothing", func(t *testing.T) {
		t.Parallel()
		s, ctx := subject(t), Context(t)
		one, two := create(t, s, browser.Spec{}), create(t, s, browser.Spec{})
		for _, inst := range []browser.Instance{one, two} {
			inst.Conn().Dispatch()
		}
		tab := NewTab(ctx, t, one)
		tab.Open(ctx, t, site.URL)
		tab.Eval(ctx, t, "(document.cookie = 'a=1', localStorage.setItem('k', 'v'))")
		other := NewTab(ctx, t, two)
		other.Open(ctx, t, site.URL)
		if got := other.Eval(ctx, t, "document.cookie + localStorage.length"); got != "0" {
			t.Fatalf("the second browser sees %q of the first", got)
		}
	})

	t.Run("a following process goes on with the same page", func(t *testing.T) {
		t.Parallel()
		s, ctx := subject(t), Context(t)
		inst := create(t, s, browser.Spec{})
		inst.Conn().Dispatch()
		tab := NewTab(ctx, t, inst)
		tab.Open(ctx, t, site.URL)
		tab.Eval(ctx, t, "window.kept = 'still here'")
		s.Sever(inst)

		again, err := s.Next().Reconnect(ctx, inst.Ref())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = again.Release() }()
		again.Conn().Dispatch()
		if got := Attach(ctx, t, again, tab.Target).Eval(ctx, t, "window.kept"); got != "still here" {
			t.Fatalf("after the reconnect the page has %q", got)
		}
	})

	t.Run("a lost connection fails every call at once and says why", func(t *testing.T) {
		t.Parallel()
		s, ctx := subject(t), Context(t)
		inst := create(t, s, browser.Spec{})
		inst.Conn().Dispatch()
		tab := NewTab(ctx, t, inst)
		failed := make(chan error, 8)
		for range cap(failed) {
			go func() {
				_, err := tab.TryEval(ctx, "new Promise(() => {})")
				failed <- err
			}()
		}
		tab.Eval(ctx, t, "1") // the others are on their way before this is answered
		began := time.Now()
		s.Sever(inst)
		for range cap(failed) {
			err := <-failed
			if _, lost := cdp.IsLost(err); !lost || !errors.Is(err, fault.BrowserLost) {
				t.Fatalf("a call in flight got %v", err)
			}
			holdsNoCanary(t, s, err)
		}
		if took := time.Since(began); took > 25*time.Second { // short: each call has half a minute of its own
			t.Fatalf("the calls failed only after %s", took)
		}
		if _, err := tab.TryEval(ctx, "1"); !errors.Is(err, fault.BrowserLost) {
			t.Fatalf("a later call got %v", err)
		}
	})

	t.Run("own browsers are found, ended once, and then gone", func(t *testing.T) {
		t.Parallel()
		s, ctx := subject(t), Context(t)
		inst := create(t, s, browser.Spec{})
		ref := inst.Ref()
		next := s.Next()
		own, err := next.Own(ctx, []browser.Ref{ref, {Provider: ref.Provider, ID: "ses_gone-1", Context: "NOSUCH"}})
		if err != nil || len(own) != 1 || own[0] != ref {
			t.Fatalf("own browsers are %+v, %v; want %+v", own, err, ref)
		}
		for range 2 {
			if err := next.End(ctx, ref); err != nil {
				t.Fatal(err)
			}
		}
		if own, err := next.Own(ctx, []browser.Ref{ref}); err != nil || len(own) != 0 {
			t.Fatalf("after the end there is %+v, %v", own, err)
		}
		if _, err := next.Reconnect(ctx, ref); !errors.Is(err, fault.BrowserLost) {
			t.Fatalf("reconnecting to an ended browser gave %v", err)
		}
	})

	t.Run("released means let go, not ended", func(t *testing.T) {
		t.Parallel()
		s, ctx := subject(t), Context(t)
		inst := create(t, s, browser.Spec{})
		if err := inst.Release(); err != nil {
			t.Fatal(err)
		}
		if own, err := s.Provider.Own(ctx, []browser.Ref{inst.Ref()}); err != nil || len(own) != 1 {
			t.Fatalf("after Release there is %+v, %v", own, err)
		}
	})

	t.Run("limits of life and network can be moved", func(t *testing.T) {
		t.Parallel()
		s, ctx := subject(t), Context(t)
		inst := create(t, s, browser.Spec{})
		if err := inst.KeepUntil(ctx, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		inst.Conn().Dispatch()
		tab := NewTab(ctx, t, inst)
		tab.Open(ctx, t, site.URL)
		if err := inst.SetPolicy(ctx, egress.Policy{BlockPrivate: true}); err != nil {
			t.Fatal(err)
		}
		// Where the provider enforces it, it holds from now on, also for what was open.
		status := tab.Eval(ctx, t, "fetch('/').then(r => r.status, () => 0)")
		if s.Guarded != (status == "403" || status == "0") {
			t.Fatalf("a request under the new policy got %s", status)
		}
		if _, err := inst.LiveViewURL(ctx, string(tab.Target)); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("ending twice is ending once", func(t *testing.T) {
		t.Parallel()
		s, ctx := subject(t), Context(t)
		inst := create(t, s, browser.Spec{})
		if err := inst.End(ctx); err != nil {
			t.Fatal(err)
		}
		if err := s.Provider.End(ctx, inst.Ref()); err != nil {
			t.Fatal(err)
		}
		select {
		case <-inst.Conn().Done():
		default:
			t.Fatal("the connection of an ended browser is still open")
		}
	})
}

func holdsNoCanary(t *testing.T, s Subject, err error) {
	t.Helper()
	if s.Canary != "" && err != nil && strings.Contains(err.Error(), s.Canary) {
		t.Fatalf("an error holds the endpoint's key: %v", err)
	}
}
