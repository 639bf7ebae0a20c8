package local_test

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/page"
)

func TestASpareBrowserIsTheOneThatIsWantedAndUsedOnce(t *testing.T) {
	t.Parallel()
	ctx, site, run := browsertest.Context(t), browsertest.Site(t), shortDir(t)
	p := local.New(run, 1, nil)
	life, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); p.KeepSpares(life, local.Stock{Always: 1}, browser.Spec{}, nil) }()
	t.Cleanup(func() { end(); <-ended })
	spare := func(not string) (id string) {
		t.Helper()
		browsertest.Eventually(t, time.Minute, "a spare browser", func() bool { return p.Spares() == 1 })
		own, err := p.Own(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, ref := range own {
			if ref.ID != not {
				id = ref.ID
			}
		}
		return id
	}
	first := spare("")

	// Who wants a browser of his own, and nothing that was done in it before, gets one.
	own, err := p.Create(ctx, browser.Spec{ID: "chk_own-1", KeepUntil: time.Now().Add(time.Minute)})
	if err != nil || own.Ref().ID != "chk_own-1" || p.Spares() != 1 {
		t.Fatalf("%v, %v; %d are left", own, err, p.Spares())
	}
	if err := own.End(ctx); err != nil {
		t.Fatal(err)
	}

	// Its own policy lets it nowhere; the one that is asked for does.
	inst, err := p.Create(ctx, browser.Spec{ID: "ses_wanted-1", Ahead: true, KeepUntil: time.Now().Add(time.Minute), Policy: browsertest.Policy(site)})
	if err != nil {
		t.Fatal(err)
	}
	if inst.Ref().ID != first {
		t.Fatalf("%s was given, not %s", inst.Ref().ID, first)
	}
	tabs, err := page.Open(ctx, inst, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tabs.Close()
	tab, err := tabs.Front(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if nav, err := tab.Navigate(ctx, site.URL, ""); err != nil || nav.Status != 200 || len(tabs.List()) != 1 {
		t.Errorf("%+v, %v, %d tabs", nav, err, len(tabs.List()))
	}

	// One that dies while it waits keeps nobody from a browser.
	second := spare(first)
	if err := syscall.Kill(browsertest.BrowserOf(second), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	other, err := p.Create(ctx, browser.Spec{ID: "ses_wanted-2", Ahead: true, KeepUntil: time.Now().Add(time.Minute)})
	if err != nil || other.Ref().ID == first || other.Ref().ID == second {
		t.Fatalf("%v, %v", other, err)
	}
	for _, inst := range []browser.Instance{inst, other} {
		if err := inst.End(ctx); err != nil {
			t.Error(err)
		}
	}
	end()
	<-ended
	if left, err := os.ReadDir(run); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestAPlaceIsKeptForWhoComesAfter(t *testing.T) {
	t.Parallel()
	ctx, run := browsertest.Context(t), shortDir(t)
	p := local.New(run, 1, nil)
	life, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.KeepSpares(life, local.Stock{Follow: 20 * time.Second}, browser.Spec{}, nil)
	}()
	t.Cleanup(func() { end(); <-ended })
	alone := func(id string) (only string) {
		t.Helper()
		inst, err := p.Create(ctx, browser.Spec{ID: id, Ahead: true, KeepUntil: time.Now().Add(time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		if own, err := p.Own(ctx, nil); err != nil || len(own) != 1 {
			t.Errorf("%d browsers beside one that is used: %v", len(own)-1, err)
		}
		if err := inst.End(ctx); err != nil {
			t.Fatal(err)
		}
		return inst.Ref().ID
	}
	if first := alone("ses_first-1"); first != "ses_first-1" {
		t.Errorf("%s was there before anybody asked", first)
	}
	browsertest.Eventually(t, 20*time.Second, "one in its place", func() bool { return p.Spares() == 1 })
	if second := alone("ses_second-1"); second == "ses_second-1" {
		t.Error("the one that was kept was not taken")
	}
	browsertest.Eventually(t, 20*time.Second, "one in its place again", func() bool { return p.Spares() == 1 })
	browsertest.Eventually(t, time.Minute, "the end of the wait", func() bool {
		left, err := os.ReadDir(run)
		return err == nil && len(left) == 0 && p.Spares() == 0
	})
}
