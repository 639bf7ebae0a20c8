package apiserver_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"tapin/internal/api"
	"tapin/internal/apiserver"
	"tapin/internal/event"
	"tapin/internal/fault"
	"tapin/internal/link"
	"tapin/internal/secret"
	"tapin/internal/store"
)

const localView = "http://127.0.0.1:3850"

// serveLinks is a server with real links, and their room for those who open them.
func serveLinks(t *testing.T) (*fixture, *api.Client, *link.Room) {
	t.Helper()
	home, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	feed, err := event.OpenFeed(home, nil)
	if err != nil {
		t.Fatal(err)
	}
	pump := event.NewPump(feed, home, nil)
	links := link.New(home, &link.Options{Pump: pump})
	address := link.NewAddress(home, localView, &link.AddressOptions{Pump: pump})
	t.Cleanup(func() { _ = feed.Close(); _ = home.Close() })
	f := serveWith(t, nil, func(d *apiserver.Deps) { d.Links, d.Address, d.Feed = links, address, feed })
	owner := f.client(t, ownerToken)
	t.Cleanup(owner.Close)
	return f, owner, links
}

func TestTheLiveViewOfASessionHasOneAddressAndNoToken(t *testing.T) {
	t.Parallel()
	f, owner, _ := serveLinks(t)
	started, err := f.agent.Start(t.Context(), api.StartRequest{URL: "https://a.example"})
	if err != nil {
		t.Fatal(err)
	}
	if started.LiveViewURL == nil || !strings.HasPrefix(*started.LiveViewURL, localView+"/live/lnk_") || strings.Contains(*started.LiveViewURL, "#") {
		t.Fatalf("the live view is at %v", started.LiveViewURL)
	}
	now, err := f.agent.Status(t.Context(), "")
	if err != nil || now.LiveViewURL == nil || *now.LiveViewURL != *started.LiveViewURL {
		t.Errorf("later it is at %v (%v)", now.LiveViewURL, err)
	}
	all, err := owner.Links(t.Context())
	if err != nil || len(all.Links) != 1 || !all.Links[0].Session || all.Links[0].Claimed {
		t.Errorf("the links are %+v (%v)", all, err)
	}
}

func TestOnlyTheOwnerHasToDoWithLinks(t *testing.T) {
	t.Parallel()
	f, _, _ := serveLinks(t)
	for name, do := range map[string]func() error{
		"make": func() error { _, err := f.agent.MintLink(t.Context(), api.LinkRequest{}); return err },
		"list": func() error { _, err := f.agent.Links(t.Context()); return err },
		"move": func() error { _, err := f.agent.MoveLink(t.Context(), "lnk_1", 10); return err },
		"end":  func() error { _, err := f.agent.RevokeLink(t.Context(), "lnk_1"); return err },
		"tell the address": func() error {
			_, err := f.agent.SetPublicURL(t.Context(), "https://evil.example")
			return err
		},
	} {
		if err := do(); !errors.Is(err, fault.Forbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestALinkIsMintedMovedAndEnded(t *testing.T) {
	t.Parallel()
	f, owner, room := serveLinks(t)
	ctx := t.Context()
	if _, err := owner.MintLink(ctx, api.LinkRequest{}); !errors.Is(err, fault.NoSession) {
		t.Fatalf("without a session: %v", err)
	}
	started, err := f.agent.Start(ctx, api.StartRequest{URL: "https://a.example"})
	if err != nil {
		t.Fatal(err)
	}
	made, err := owner.MintLink(ctx, api.LinkRequest{Minutes: 30})
	if err != nil {
		t.Fatal(err)
	}
	at, token, ok := strings.Cut(made.OpenURL.Reveal(), "#t=")
	if !ok || at != made.URL || len(token) < 40 || made.SessionID != started.SessionID || made.Mode != "drive" {
		t.Fatalf("minted %+v", made.Link)
	}
	if lives := made.ExpiresAt.Sub(made.CreatedAt).Round(1e9).Minutes(); lives != 30 {
		t.Errorf("it lives %v minutes", lives)
	}
	if strings.Contains(f.log.String(), token) {
		t.Error("the token is in the log")
	}
	claim := func() (number int, err error) {
		_, err = room.Claim(ctx, made.LinkID, secret.New(token))
		if err != nil {
			number, _ = fault.Of(err).Data["number"].(int)
		}
		return number, err
	}
	if _, err := claim(); err != nil {
		t.Fatal(err)
	}
	number, err := claim()
	if !errors.Is(err, fault.LinkClaimed) {
		t.Fatalf("a second device: %v", err)
	}
	if _, err := owner.MoveLink(ctx, made.LinkID, (number-10+1)%90+10); !errors.Is(err, fault.NotFound) {
		t.Errorf("a wrong number: %v", err)
	}
	moved, err := owner.MoveLink(ctx, made.LinkID, number)
	if err != nil || len(moved.Waiting) != 0 {
		t.Errorf("moved: %+v %v", moved, err)
	}
	if _, err := owner.RevokeLink(ctx, made.LinkID); err != nil {
		t.Error(err)
	}
	if _, err := claim(); !errors.Is(err, fault.LinkExpired) {
		t.Errorf("after its end: %v", err)
	}
	want := []string{event.LinkMinted, event.LinkMinted, event.LinkClaimed, event.LinkWaiting, event.LinkMoved, event.LinkEnded}
	var got []string
	for e, err := range f.agent.Events(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(e.Data), token) {
			t.Error("the token is in the feed")
		}
		if got = append(got, e.Type); len(got) == len(want) {
			break
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the feed tells %v", got)
	}
}

func TestATunnelsAddressIsWhatLinksBeginWith(t *testing.T) {
	t.Parallel()
	f, owner, _ := serveLinks(t)
	ctx := t.Context()
	if p, err := owner.Public(ctx); err != nil || p.Source != "none" || p.URL != localView {
		t.Fatalf("at first: %+v %v", p, err)
	}
	for _, bad := range []string{"http://a.example", "https://", "https://a.example/path", "https://u:p@a.example", "https://a.example?x", "https://a.example#x", "javascript:alert(1)"} {
		if _, err := owner.SetPublicURL(ctx, bad); !errors.Is(err, fault.InvalidRequest) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if p, err := owner.SetPublicURL(ctx, "https://calm-tree.example/"); err != nil || p.Source != "discovered" || p.URL != "https://calm-tree.example" {
		t.Fatalf("told: %+v %v", p, err)
	}
	started, err := f.agent.Start(ctx, api.StartRequest{URL: "https://a.example"})
	if err != nil || !strings.HasPrefix(*started.LiveViewURL, "https://calm-tree.example/live/") {
		t.Fatalf("the live view is at %v (%v)", started.LiveViewURL, err)
	}
	if p, err := owner.SetPublicURL(ctx, ""); err != nil || p.Source != "none" {
		t.Errorf("taken back: %+v %v", p, err)
	}
	now, _ := f.agent.Status(ctx, "")
	if !strings.HasPrefix(*now.LiveViewURL, localView) {
		t.Errorf("then it is at %s", *now.LiveViewURL)
	}
}

// signpost is a prober that knows where addresses lead.
type signpost map[string]error

func (s signpost) Check(_ context.Context, address string) error { return s[address] }

func TestWhetherThePublicAddressLeadsHereIsAnAnswer(t *testing.T) {
	t.Parallel()
	home, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = home.Close() })
	address := link.NewAddress(home, localView, nil)
	f := serveWith(t, nil, func(d *apiserver.Deps) {
		d.Links, d.Address = link.New(home, nil), address
		d.Prober = signpost{"https://astray.example": fault.New(fault.Busy, "", "nobody answers").WithHint("Look there.")}
		d.Nearby = func() []string { return []string{"http://192.168.1.20:3850"} }
	})
	owner := f.client(t, ownerToken)
	t.Cleanup(owner.Close)
	for _, tt := range []struct {
		address        string
		reached        bool
		reason, advice string
		source, url    string
	}{
		{"", false, "only this machine", "tunnel", "none", localView},
		{"https://here.example", true, "", "", "discovered", "https://here.example"},
		{"https://astray.example", false, "nobody answers", "Look there.", "discovered", "https://astray.example"},
	} {
		if _, err := owner.SetPublicURL(t.Context(), tt.address); err != nil {
			t.Fatal(err)
		}
		got, err := owner.CheckPublic(t.Context())
		if err != nil || got.Reached != tt.reached || !strings.Contains(got.Reason, tt.reason) || !strings.Contains(got.Advice, tt.advice) ||
			got.Source != tt.source || got.URL != tt.url || got.CheckedAt.IsZero() || len(got.LAN) != 1 {
			t.Errorf("%q: %+v, %v", tt.address, got, err)
		}
	}
	if _, err := f.agent.CheckPublic(t.Context()); !errors.Is(err, fault.Forbidden) {
		t.Errorf("the agent may have addresses asked: %v", err)
	}
}
