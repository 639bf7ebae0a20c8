package sidecar

import (
	"context"
	"errors"
	"time"

	"tapin/internal/browser"
	"tapin/internal/browser/browserbase"
	"tapin/internal/egress"
	"tapin/internal/fault"
	"tapin/internal/logins"
	"tapin/internal/page"
	"tapin/internal/session"
	"tapin/internal/store"
)

// saved shows the saved logins to the sessions in the words of theirs.
type saved struct{ *logins.Room }

var _ session.Saved = saved{}

func (s saved) Save(ctx context.Context, name, session, address string, state browser.State) error {
	_, err := s.Room.Save(ctx, name, session, state, logins.SaveOptions{URL: address})
	return err
}

var _ session.Kept = saved{}

// KeptAt is what the manifest says.
func (s saved) KeptAt(ctx context.Context, name, provider string) (string, error) {
	if provider != browserbase.Name {
		return "", nil
	}
	login, err := s.Get(ctx, name)
	if errors.Is(err, fault.NotFound) {
		return "", nil
	}
	return login.BrowserbaseContextID, err
}

// KeepAt writes it there.
func (s saved) KeepAt(ctx context.Context, name, session, provider, id string) error {
	return s.Bind(ctx, name, session, provider, id)
}

func (s saved) Stale(ctx context.Context, name, _ string) error {
	return s.Room.Stale(ctx, name, logins.NeededLogin)
}

func (s saved) Verified(ctx context.Context, name, how string) error {
	return s.Room.Verified(ctx, name, logins.How(how))
}

// checkWithin bounds a look at a site, lookWithin the wait for what tells.
const (
	checkWithin = time.Minute
	lookWithin  = 10 * time.Second
)

// checker looks at a site with a saved login, in a browser of its own.
type checker struct {
	providers session.Providers
	policy    egress.Policy
	look      page.Look
}

var _ logins.Checker = (*checker)(nil)

func (c *checker) Look(ctx context.Context, check logins.Check, state browser.State) (logins.Seen, error) {
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	provider, err := c.providers("")
	if err != nil {
		return logins.Seen{}, err
	}
	inst, err := provider.Create(ctx, browser.Spec{ID: store.NewID("chk") + "-1", KeepUntil: time.Now().Add(checkWithin), Policy: c.policy})
	if err != nil {
		return logins.Seen{}, err
	}
	defer func() { _ = inst.End(context.WithoutCancel(ctx)) }()
	tabs, err := page.Open(ctx, inst, &page.Options{Look: c.look})
	if err != nil {
		return logins.Seen{}, err
	}
	defer tabs.Close()
	if _, err := tabs.Restore(ctx, state); err != nil {
		return logins.Seen{}, err
	}
	tab, err := tabs.Front(ctx)
	if err != nil {
		return logins.Seen{}, err
	}
	at, err := tab.Navigate(ctx, check.URL, "")
	if err != nil {
		return logins.Seen{}, err
	}
	wanted := page.WaitOptions{Text: check.Text, State: "visible", Timeout: lookWithin}
	if check.Selector != "" {
		wanted.Locator = &page.Locator{CSS: check.Selector}
	}
	seen := logins.Seen{Status: at.Status, Found: tab.WaitFor(ctx, wanted) == nil}
	if here, err := tab.Here(ctx); err == nil {
		seen.URL = here.URL
	}
	if after, _, err := tabs.ReadState(ctx); err == nil {
		seen.State = &after
	}
	return seen, nil
}
