package sidecar

import (
	"github.com/prometheus/client_golang/prometheus"

	"tapin/internal/browser/local"
	"tapin/internal/egress"
)

// countBlocks counts what the network guard refused, by rule. The rules are a
// fixed list; addresses never become a label.
func countBlocks(registry *prometheus.Registry) func(egress.Block) {
	blocks := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tapin_egress_blocked_total", Help: "Requests of pages that the network guard refused, by rule.",
	}, []string{"rule"})
	registry.MustRegister(blocks)
	return func(b egress.Block) { blocks.WithLabelValues(b.Rule).Inc() }
}

// countReady tells how many browsers wait for a session.
func countReady(registry *prometheus.Registry, from *local.Provider) {
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tapin_browsers_ready", Help: "Browsers that were started ahead and wait for a session.",
	}, func() float64 { return float64(from.Spares()) }))
}
