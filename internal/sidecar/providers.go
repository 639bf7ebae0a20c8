package sidecar

import (
	"context"
	"path/filepath"
	"sync"

	"tapin/internal/browser"
	"tapin/internal/browser/browserbase"
	"tapin/internal/browser/endpoint"
	"tapin/internal/browser/local"
	"tapin/internal/config"
	"tapin/internal/egress"
	"tapin/internal/fault"
	"tapin/internal/store"
)

// providers makes each provider when it is first asked for: one that is never
// used may stay unconfigured.
type providers struct {
	config *config.Config
	local  *local.Provider

	endpointOnce sync.Once
	endpoint     *endpoint.Provider
	endpointErr  error

	cloud    *browserbase.Provider
	cloudErr error // why there is none
}

// browserCache is where the version of the browser is kept.
const browserCache = "chromium.json"

func newProviders(o Options, epoch uint64) *providers {
	c := o.Config
	store.Derived(o.Home, browserCache, func(*map[string]any) error { return nil }) // whoever uses it does not tell of it
	return &providers{config: c, local: local.New(filepath.Join(o.Home.Path(), "run"), epoch, &local.Options{
		Chromium: c.Browser.Path, Headful: c.Browser.Headful, Args: c.Browser.Args,
		Locale: c.Browser.Locale, Upstream: c.Browser.UpstreamProxy, Cache: filepath.Join(o.Home.Path(), browserCache), Logger: o.Logger,
	})}
}

// get is session.Providers.
func (p *providers) get(name string) (browser.Provider, error) {
	which := config.Provider(name)
	if name == "" {
		which = p.config.Provider
	}
	if err := p.config.Ready(which); err != nil {
		return nil, err
	}
	switch which {
	case config.ProviderLocal:
		return p.local, nil
	case config.ProviderCDP:
		p.endpointOnce.Do(func() { p.endpoint, p.endpointErr = endpoint.New(p.config.CDP.URL, p.config.CDP.Headers) })
		if p.endpointErr != nil {
			return nil, p.endpointErr
		}
		return p.endpoint, nil
	}
	if p.cloudErr != nil {
		return nil, p.cloudErr
	}
	if p.cloud == nil {
		return nil, fault.New(fault.ProviderNotConfigured, "use provider "+string(which), "it is not set up here")
	}
	return p.cloud, nil
}

// warmUp finds the browser while the first caller is still on its way.
func (p *providers) warmUp() {
	if p.config.Provider == config.ProviderLocal {
		_, _ = p.local.Chromium() // a failure is told to whoever starts a session
	}
}

// keepSpares keeps browsers ready for the sessions to come, as many as may be
// there at a time. Nobody wants a window to open before a session begins. Vacant is
// that there are no sessions yet.
func (p *providers) keepSpares(ctx context.Context, vacant bool, guard egress.Policy, open func(context.Context, browser.Instance) error) {
	if p.config.Provider != config.ProviderLocal {
		return
	}
	stock := local.Stock{Always: min(p.config.Pool.Warm, p.config.MaxSessions), Vacant: vacant}
	if !p.config.Browser.Headful {
		stock.Follow = p.config.Pool.Follow.Std()
	}
	p.local.KeepSpares(ctx, stock, browser.Spec{Policy: guard}, open)
}
