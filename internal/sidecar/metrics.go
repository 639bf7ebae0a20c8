package sidecar

import (
	"github.com/prometheus/client_golang/prometheus"

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
