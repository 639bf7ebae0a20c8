package local_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/fault"
	"tapin/internal/page"
	"tapin/internal/testwait"
)

func TestASpareBrowserIsTheOneThatIsWantedAndUsedOnce(t *testing.T) {
	t.Parallel()
	ctx, site, run := browsertest.Context(t), browsertest.Site(t), shortDir(t)
	p := local.New(run, 1, nil)
	end := keeping(t, p, local.Stock{Always: 1})
	spare := func(not string) (id string) {
		t.Helper()
		testwait.For(t, "a spare browser", func() bool { return p.Spares() == 1 })
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
	own, err := p.Create(ctx, browser.Spec{ID: "chk_own-1", KeepUntil: testwait.Late()})
	if err != nil || own.Ref().ID != "chk_own-1" || p.Spares() != 1 {
		t.Fatalf("%v, %v; %d are left", own, err, p.Spares())
	}
	if err := own.End(ctx); err != nil {
		t.Fatal(err)
	}

	// Its own policy lets it nowhere; the one that is asked for does.
	inst, err := p.Create(ctx, browser.Spec{ID: "ses_wanted-1", Ahead: true, KeepUntil: testwait.Late(), Policy: browsertest.Policy(site)})
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
	other, err := p.Create(ctx, forSession("ses_wanted-2"))
	if err != nil || other.Ref().ID == first || other.Ref().ID == second {
		t.Fatalf("%v, %v", other, err)
	}
	for _, inst := range []browser.Instance{inst, other} {
		if err := inst.End(ctx); err != nil {
			t.Error(err)
		}
	}
	end()
	if left, err := os.ReadDir(run); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestAPlaceIsKeptForWhoComesAfter(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx, run := browsertest.Context(t), shortDir(t)
	p := local.New(run, 1, nil)
	keeping(t, p, local.Stock{Follow: 20 * time.Second})
	alone := func(id string) (only string) {
		t.Helper()
		inst, err := p.Create(ctx, forSession(id))
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
	testwait.For(t, "one in its place", func() bool { return p.Spares() == 1 })
	if second := alone("ses_second-1"); second == "ses_second-1" {
		t.Error("the one that was kept was not taken")
	}
	testwait.For(t, "one in its place again", func() bool { return p.Spares() == 1 })
	testwait.For(t, "the end of the wait", func() bool {
		left, err := os.ReadDir(run)
		return err == nil && len(left) == 0 && p.Spares() == 0
	})
}

// keeping keeps browsers ready until the test is over; end ends that, and waits for it.
func keeping(t *testing.T, p *local.Provider, stock local.Stock) (end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(browsertest.Context(t))
	ended := make(chan struct{})
	go func() { defer close(ended); p.KeepSpares(ctx, stock, browser.Spec{}, nil) }()
	end = func() { stop(); <-ended }
	t.Cleanup(end)
	return end
}

func TestWhereNothingRunsAPlaceIsKeptForWhoComesFirst(t *testing.T) {
	t.Parallel()
	ctx, run := browsertest.Context(t), shortDir(t)
	p := local.New(run, 1, nil)
	keeping(t, p, local.Stock{Follow: time.Minute, Vacant: true})
	testwait.For(t, "one for the first", func() bool { return p.Spares() == 1 })
	inst, err := p.Create(ctx, forSession("ses_first-1"))
	if err != nil || inst.Ref().ID == "ses_first-1" || p.Spares() != 0 {
		t.Fatalf("%v, %v; %d are left", inst, err, p.Spares())
	}
	if err := inst.End(ctx); err != nil {
		t.Error(err)
	}
}

func TestWhoComesBeforeAnythingWasStartedTakesThePlaceAllTheSame(t *testing.T) {
	t.Parallel()
	ctx, run := browsertest.Context(t), shortDir(t)
	p := local.New(run, 1, nil)
	inst, err := p.Create(ctx, forSession("ses_early-1"))
	if err != nil {
		t.Fatal(err)
	}
	keeping(t, p, local.Stock{Follow: time.Minute, Vacant: true})
	for range 20 {
		time.Sleep(100 * time.Millisecond) // twice as long as it takes to begin with one
		if own, err := p.Own(ctx, nil); err != nil || len(own) != 1 {
			t.Fatalf("%d browsers for one: %v", len(own), err)
		}
	}
	if err := inst.End(ctx); err != nil {
		t.Error(err)
	}
}

// forSession is the browser that a session wants.
func forSession(id string) browser.Spec {
	return browser.Spec{ID: id, Ahead: true, KeepUntil: testwait.Late()}
}

// beingMade waits until one is being made, and tells its name.
func beingMade(t *testing.T, run string) (name string) {
	t.Helper()
	testwait.For(t, "one to be begun with", func() bool {
		found, err := os.ReadDir(run)
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range found {
			name = dir.Name()
		}
		return name != ""
	})
	return name
}

func TestTheOneThatIsBeingMadeIsForWhoComesFirst(t *testing.T) {
	t.Parallel()
	ctx, run := browsertest.Context(t), shortDir(t)
	p := local.New(run, 1, nil)
	end := keeping(t, p, local.Stock{Follow: time.Minute, Vacant: true})
	being := beingMade(t, run)
	var made [2]browser.Instance
	var all sync.WaitGroup
	for i := range made {
		all.Go(func() {
			var err error
			made[i], err = p.Create(ctx, forSession(fmt.Sprintf("ses_both-%d", i)))
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	first, second := made[0].Ref().ID, made[1].Ref().ID
	if (first == being) == (second == being) {
		t.Errorf("%s was being made; %s and %s were given", being, first, second)
	}
	for _, inst := range made {
		if err := inst.End(ctx); err != nil {
			t.Error(err)
		}
	}
	end()
	if left, err := os.ReadDir(run); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestTheOneThatNobodyWaitsForAnyLongerIsKept(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx, run := browsertest.Context(t), shortDir(t)
	p := local.New(run, 1, nil)
	keeping(t, p, local.Stock{Follow: time.Minute, Vacant: true})
	being := beingMade(t, run)
	impatient, leave := context.WithTimeout(ctx, 10*time.Millisecond) // short: it must run out
	defer leave()
	if _, err := p.Create(impatient, forSession("ses_gone-1")); err == nil {
		t.Fatal("it was there at once")
	}
	testwait.For(t, "it to be ready", func() bool { return p.Spares() == 1 })
	time.Sleep(1500 * time.Millisecond) // what is too many is ended after a second
	inst, err := p.Create(ctx, forSession("ses_next-1"))
	if err != nil || inst.Ref().ID != being {
		t.Fatalf("%v was given, not %s: %v", inst, being, err)
	}
	if err := inst.End(ctx); err != nil {
		t.Error(err)
	}
}

func TestNothingIsLeftWhereTheKeepingEndsAsSomebodyWaits(t *testing.T) {
	t.Parallel()
	ctx, run := browsertest.Context(t), shortDir(t)
	p := local.New(run, 1, nil)
	end := keeping(t, p, local.Stock{Always: 1})
	beingMade(t, run)
	got := make(chan browser.Instance, 1)
	go func() {
		inst, err := p.Create(ctx, forSession("ses_waits-1"))
		if err != nil {
			t.Error(err)
		}
		got <- inst
	}()
	time.Sleep(20 * time.Millisecond)
	end()
	if inst := <-got; inst != nil {
		if err := inst.End(ctx); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(run); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A session that fails to begin, at an address that cannot be opened say, is tried
// again: its next attempt finds a browser as the first did.
func TestWhoFailsToBeginFindsOneAgain(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx, run := browsertest.Context(t), shortDir(t)
	p := local.New(run, 1, nil)
	keeping(t, p, local.Stock{Follow: time.Minute, Vacant: true})
	testwait.For(t, "one for the first", func() bool { return p.Spares() == 1 })
	inst, err := p.Create(ctx, forSession("ses_fails-1"))
	if err != nil {
		t.Fatal(err)
	}
	_ = inst.Release()
	if err := p.End(ctx, inst.Ref()); err != nil { // as who undoes it does
		t.Fatal(err)
	}
	testwait.For(t, "one for the next attempt", func() bool { return p.Spares() == 1 })
}

func TestWhoHasLeftTakesNone(t *testing.T) {
	t.Parallel()
	ctx, run := browsertest.Context(t), shortDir(t)
	p := local.New(run, 1, nil)
	keeping(t, p, local.Stock{Always: 2})
	testwait.For(t, "two", func() bool { return p.Spares() == 2 })
	gone, leave := context.WithCancel(ctx)
	leave()
	if _, err := p.Create(gone, forSession("ses_gone-2")); fault.Of(err).Code != fault.SessionCreateFailed {
		t.Errorf("who had left got %v", err)
	}
	if n := p.Spares(); n != 2 {
		t.Errorf("%d of 2 are left", n)
	}
}
