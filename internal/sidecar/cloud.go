package sidecar

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tapin/internal/apiserver"
	"tapin/internal/browser/browserbase"
	"tapin/internal/browser/usage"
	"tapin/internal/config"
	"tapin/internal/fault"
	"tapin/internal/secret"
	"tapin/internal/session"
	"tapin/internal/store"
	"tapin/internal/vault"
)

// installFile names this tapin among all that may use the same account.
const installFile = "install.id"

// handoffTail is how much longer than its hand-off a browser is kept.
const handoffTail = 10 * time.Minute

// forgetWithin bounds the deletion of what a provider keeps.
const forgetWithin = 10 * time.Second

// openCloud makes the provider of billed browsers, and the account of what they
// cost. It asks for no key yet: who never uses it needs none.
func (s *sidecar) openCloud(p *providers, keys *vault.Vault) (*usage.Ledger, error) {
	book := usage.Open(s.opts.Home, &usage.Options{CapMinutes: s.opts.Config.Usage.CapMinutes, Logger: s.opts.Logger})
	mark, err := installID(s.opts.Home)
	if errors.Is(err, fault.Unreadable) {
		p.cloudErr = err // under another name its browsers would be nobody's
		return book, nil
	}
	if err != nil {
		return nil, err
	}
	c := s.opts.Config.Integrations.Browserbase
	p.cloud = browserbase.New(mark, func(ctx context.Context) (browserbase.Account, error) { return cloudAccount(ctx, keys) }, &browserbase.Options{
		Region: c.DefaultRegion, BlockAds: c.BlockAds, SolveCaptchas: c.SolveCaptchas, Record: c.RecordSessions,
		Spare: c.HandoffTimeout.Std() + handoffTail, Ledger: book, Logger: s.opts.Logger,
	})
	s.closers = append(s.closers, p.cloud.Close)
	return book, nil
}

// recoverLater tries again what could not be judged at the start, because its
// provider did not answer: a browser there may be paid for and used by nobody.
func (s *sidecar) recoverLater(ctx context.Context) {
	for pause := 5 * time.Second; s.unfinished; pause = min(2*pause, 5*time.Minute) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		found, err := s.sessions.Recover(ctx)
		if err == nil {
			s.unfinished = false
			s.opts.Logger.Info("what an earlier run left is in order now", "picked up again", found.Reconnected, "closed", found.Closed)
		}
	}
}

// installID is made once. The same home is the same tapin, wherever it is.
func installID(home *store.Home) (string, error) {
	err := home.Create(installFile, []byte(store.NewID("tpn")+"\n"))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	raw, err := home.Read(installFile)
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(raw))
	if !store.ValidID("tpn", id) {
		return "", home.Unreadable(installFile, errors.New("it does not hold a name of ours"))
	}
	return id, nil
}

// cloudAccount is in the keychain or the environment.
func cloudAccount(ctx context.Context, keys *vault.Vault) (a browserbase.Account, err error) {
	if a.Key, err = keys.Credential(ctx, "credential-browserbase-api-key"); err != nil {
		return a, notSetUp(err)
	}
	project, err := keys.Credential(ctx, "credential-browserbase-project-id")
	if err != nil && !errors.Is(err, fault.NotFound) {
		return a, err
	}
	base, err := keys.Credential(ctx, "credential-browserbase-base-url")
	if err != nil && !errors.Is(err, fault.NotFound) {
		return a, err
	}
	a.Project, a.BaseURL = project.Reveal(), base.Reveal()
	return a, nil
}

func notSetUp(err error) error {
	if !errors.Is(err, fault.NotFound) {
		return err
	}
	return fault.New(fault.ProviderNotConfigured, "use provider browserbase", "there is no API key").
		WithHint("Put it into the keychain as credential-browserbase-api-key, or set BROWSERBASE_API_KEY. provider: local needs none.")
}

// sweeps are the providers where something of ours may run that no record names.
func sweeps(c *config.Config, book *usage.Ledger) []string {
	if c.Provider == config.ProviderBrowserbase || len(book.Running(browserbase.Name)) > 0 {
		return []string{browserbase.Name}
	}
	return nil
}

// forgetKept deletes what Browserbase keeps of a login, where there is a key.
func forgetKept(p *providers) func(context.Context, string) (bool, error) {
	return func(ctx context.Context, id string) (bool, error) {
		if p.cloud == nil || p.config.Ready(config.ProviderBrowserbase) != nil {
			return false, nil
		}
		// Whoever deletes waits for it, and so does the next start.
		ctx, cancel := context.WithTimeout(ctx, forgetWithin)
		defer cancel()
		err := p.cloud.DropKept(ctx, id)
		if errors.Is(err, fault.ProviderNotConfigured) {
			return false, nil
		}
		return err == nil, err
	}
}

// countMinutes shows what billed browsers came to.
func countMinutes(registry *prometheus.Registry, book *usage.Ledger) {
	report := func(of func(usage.Report) float64) func() float64 {
		return func() float64 { return of(book.Report(time.Now())) }
	}
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tapin_billed_minutes", Help: "Minutes of billed browsers in this calendar month, those that run included.",
		}, report(func(r usage.Report) float64 { return float64(r.Minutes()) })),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tapin_billed_minutes_cap", Help: "The owner's limit for a calendar month; 0 means none.",
		}, report(func(r usage.Report) float64 { return float64(r.CapMinutes) })),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "tapin_billed_browsers", Help: "Billed browsers that run now.",
		}, report(func(r usage.Report) float64 { return float64(len(r.Running)) })),
	)
}

// providerView is where people are sent with live_view: provider. It has no
// sign-in, and so is for the owner alone; the agent is told of ours.
func providerView(c *config.Config, sessions *session.Host) apiserver.ProviderView {
	if c.LiveView != config.LiveViewProvider {
		return nil
	}
	return func(ctx context.Context, id string) (secret.Text, error) {
		on, err := sessions.Get(id)
		if err != nil {
			return secret.Text{}, nil //nolint:nilerr // a parked one has no browser to show; ours brings it back
		}
		return on.LiveView(ctx)
	}
}
