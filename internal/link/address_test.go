package link_test

import (
	"slices"
	"testing"

	"tapin/internal/event"
	"tapin/internal/link"
	"tapin/internal/store"
)

func TestWhatATunnelToldIsKnownToTheNextSidecarUnlessThereIsNoneAnyMore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func(o *link.AddressOptions) *link.Address {
		home, err := store.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = home.Close() })
		a := link.NewAddress(home, "http://127.0.0.1:3850", o)
		return a
	}
	a := open(&link.AddressOptions{Tunnelled: true})
	_, changed := a.Names()
	if err := a.Set(t.Context(), "https://Calm-Tree.example"); err != nil {
		t.Fatal(err)
	}
	<-changed
	a = open(&link.AddressOptions{Tunnelled: true})
	if at, discovered := a.Now(); at != "https://Calm-Tree.example" || !discovered {
		t.Errorf("the next one begins links with %s", at)
	}
	if names, _ := a.Names(); !slices.Equal(names, []string{"calm-tree.example"}) {
		t.Errorf("its names are %v", names)
	}
	a = open(&link.AddressOptions{Tunnelled: true, Configured: "https://tapin.example.com/"})
	if at := a.Of("lnk_1"); at != "https://tapin.example.com/live/lnk_1" {
		t.Errorf("what the owner configured gives %s", at)
	}
	if names, _ := a.Names(); len(names) != 2 {
		t.Errorf("its names are %v", names)
	}
	a = open(nil)
	if at, _ := a.Now(); at != "http://127.0.0.1:3850" {
		t.Errorf("without a tunnel links begin with %s", at)
	}
}

func TestNewsOfALinkThatAKillKeptAreToldLater(t *testing.T) {
	t.Parallel()
	home, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = home.Close() }()
	feed, err := event.OpenFeed(home, nil)
	if err != nil {
		t.Fatal(err)
	}
	pump := event.NewPump(feed, home, nil)
	r := link.New(home, &link.Options{Pump: pump})
	_ = feed.Close() // whatever is told now is not taken
	l, _ := mint(t, r)
	if err := r.Revoke(t.Context(), l.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Get(t.Context(), l.ID); code(err) != "LINK_EXPIRED" {
		t.Errorf("a link that was ended and not told of yet: %v", err)
	}
	if feed, err = event.OpenFeed(home, nil); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = feed.Close() }()
	r = link.New(home, &link.Options{Pump: event.NewPump(feed, home, nil)})
	if left, err := r.List(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("left: %v %v", left, err)
	}
	told, _ := feed.Since(0, 0)
	if len(told) != 2 || told[0].Type != event.LinkMinted || told[1].Type != event.LinkEnded {
		t.Errorf("told: %+v", told)
	}
	if names, err := home.List("links"); err != nil || len(names) != 0 {
		t.Errorf("on the disk is left: %v %v", names, err)
	}
}

func TestADeviceThatKnocksIsLetInByTheOwnerAlone(t *testing.T) {
	t.Parallel()
	r := room(t, t.TempDir())
	personal, _ := mint(t, r)
	if _, err := r.Knock(t.Context(), personal.ID); code(err) != "UNAUTHORIZED" {
		t.Errorf("at a personal link: %v", err)
	}
	l, err := r.View(t.Context(), "ses_1", personal.ExpiresAt)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.View(t.Context(), "ses_1", personal.ExpiresAt); err != nil || again.ID != l.ID {
		t.Errorf("asked again: %+v %v", again, err)
	}
	device, err := r.Knock(t.Context(), l.ID)
	if code(err) != "LINK_CLAIMED" {
		t.Fatalf("knocked: %v", err)
	}
	if _, err := r.Enter(t.Context(), l.ID, device); code(err) != "LINK_CLAIMED" {
		t.Errorf("came in unasked: %v", err)
	}
	for range 2 {
		_, _ = r.Knock(t.Context(), l.ID)
	}
	if _, err := r.Knock(t.Context(), l.ID); code(err) != "RATE_LIMITED" {
		t.Errorf("the fourth: %v", err)
	}
	now, err := r.Get(t.Context(), l.ID)
	if err != nil || len(now.Waiting) != 3 || now.Claimed {
		t.Fatalf("waiting: %+v %v", now, err)
	}
	if _, err := r.Move(t.Context(), l.ID, now.Waiting[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Enter(t.Context(), l.ID, device); err != nil {
		t.Errorf("let in: %v", err)
	}
}
