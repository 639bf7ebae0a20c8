package sidecar

import (
	"github.com/prometheus/client_golang/prometheus"

	"tapin/internal/browser"
	"tapin/internal/config"
	"tapin/internal/egress"
	"tapin/internal/event"
	"tapin/internal/oneshot"
	"tapin/internal/page"
)

// newOneShots makes the room of one-shots, over the configured provider.
func newOneShots(o Options, without bool, from *providers, guard egress.Policy, look page.Look, journal *event.Journal, registry *prometheus.Registry) (*oneshot.Room, error) {
	warm := o.Config.Pool.Warm
	if o.Config.Provider == config.ProviderBrowserbase {
		warm = 0 // what waits there is paid for
	}
	return oneshot.New(oneshot.Deps{
		Provider: func() (browser.Provider, error) { return from.get("") },
		Journal:  journal,
	}, &oneshot.Options{
		Disabled: without || !o.Config.BrowserTools.Enabled, Warm: warm,
		Policy: guard, Look: look, Registry: registry, Logger: o.Logger,
	})
}
