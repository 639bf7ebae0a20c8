package session_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapin/internal/browser"
	"tapin/internal/browser/browsertest"
	"tapin/internal/browser/local"
	"tapin/internal/session"
	"tapin/internal/store"
	"tapin/internal/testwait"
)

func TestACleanupEndsWhatWasLeftAndNothingThatIsInUse(t *testing.T) {
	t.Parallel()
	ctx := browsertest.Context(t)
	site, dir := browsertest.Site(t), place(t)
	h := move(t, dir, site, session.Options{Max: 2})
	if found, err := h.host.Recover(ctx); err != nil {
		t.Fatalf("recovered %+v, %v", found, err)
	}
	live, err := h.host.Start(ctx, session.StartOptions{URL: site.URL})
	if err != nil {
		t.Fatal(err)
	}
	// A browser that no record names, and one that another part of the process has.
	provider := local.New(filepath.Join(dir, "run"), 1, nil)
	orphan, pooled := store.NewID("ses")+"-1", "oneshot-1"
	for _, id := range []string{orphan, pooled} {
		inst, err := provider.Create(ctx, browser.Spec{ID: id, KeepUntil: testwait.Late()})
		if err != nil {
			t.Fatal(err)
		}
		_ = inst.Release()
	}
	defer browsertest.End(t, provider, browser.Ref{Provider: local.Name, ID: pooled})
	found, err := h.host.Recover(ctx)
	if diff := cmp.Diff(session.Recovered{}, found); err != nil || diff != "" {
		t.Fatalf("%v, %s", err, diff)
	}
	own, err := provider.Own(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, ref := range own {
		ids = append(ids, ref.ID)
	}
	if diff := cmp.Diff([]string{pooled, live.ID() + "-1"}, ids); diff != "" {
		t.Fatal(diff)
	}
	if _, err := live.Navigate(ctx, site.URL+"/plain", ""); err != nil {
		t.Fatalf("the live session is no longer: %v", err)
	}
}

func TestCleanupsDisturbNoStartAndNoStop(t *testing.T) {
	t.Parallel()
	browsertest.Long(t)
	ctx := browsertest.Context(t)
	site, dir := browsertest.Site(t), place(t)
	h := move(t, dir, site, session.Options{})
	if _, err := h.host.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	cleaning, stop := context.WithCancel(ctx)
	defer stop()
	var cleaners sync.WaitGroup
	for range 2 {
		cleaners.Go(func() {
			for cleaning.Err() == nil {
				if found, err := h.host.Recover(ctx); err != nil || len(found.Closed)+len(found.Reconnected)+len(found.LeftAlone) > 0 {
					t.Errorf("cleaned up %+v, %v", found, err)
					return
				}
			}
		})
	}
	for range 4 {
		s, err := h.host.Start(ctx, session.StartOptions{URL: site.URL})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.host.Stop(ctx, s.ID(), nil); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	cleaners.Wait()
	if files := left(t, dir); len(files) > 0 {
		t.Fatalf("there is %v", files)
	}
	wantTypes(t, h.feed, "session.started", "session.stopped", "session.started", "session.stopped",
		"session.started", "session.stopped", "session.started", "session.stopped")
}
