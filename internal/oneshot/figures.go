package oneshot

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tapin/internal/egress"
	"tapin/internal/fault"
)

// figures are what is counted. Labels come from fixed lists: an address never
// becomes one.
type figures struct {
	calls   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	errors  *prometheus.CounterVec
	retries *prometheus.CounterVec
	blocks  *prometheus.CounterVec
	pool    *prometheus.CounterVec
}

func newFigures(registry prometheus.Registerer) *figures {
	f := &figures{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tapin_oneshot_total", Help: "One-shot calls that have ended.",
		}, []string{"tool"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tapin_oneshot_seconds", Help: "Time of a one-shot call, retries included.",
			Buckets: []float64{.1, .25, .5, .75, 1, 1.5, 2, 3, 5, 8, 13, 21, 34, 55, 90},
		}, []string{"tool"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tapin_oneshot_errors_total", Help: "One-shot calls that failed, by code.",
		}, []string{"tool", "code"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tapin_oneshot_retries_total", Help: "Attempts of one-shot calls after the first.",
		}, []string{"tool"}),
		blocks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tapin_oneshot_blocked_total", Help: "What the network guard refused to one-shots, by rule.",
		}, []string{"rule"}),
		pool: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tapin_oneshot_contexts_total", Help: "Browser contexts given to one-shots: warm ones, and those made on the spot.",
		}, []string{"from"}),
	}
	for _, tool := range []string{"screenshot", "extract"} {
		f.calls.WithLabelValues(tool)
		f.retries.WithLabelValues(tool)
	}
	f.pool.WithLabelValues("warm")
	f.pool.WithLabelValues("cold")
	if registry != nil {
		registry.MustRegister(f.calls, f.seconds, f.errors, f.retries, f.blocks, f.pool)
	}
	return f
}

func (f *figures) observe(tool string, took time.Duration, retries int, err error) {
	f.calls.WithLabelValues(tool).Inc()
	f.seconds.WithLabelValues(tool).Observe(took.Seconds())
	f.retries.WithLabelValues(tool).Add(float64(retries))
	if err != nil {
		f.errors.WithLabelValues(tool, string(fault.Of(err).Code)).Inc()
	}
}

// refused counts what was turned away at the door.
func (f *figures) refused(err error) {
	if rule, ok := fault.Of(err).Data["rule"].(string); ok {
		f.blocks.WithLabelValues(rule).Inc()
	}
}

func (f *figures) blocked(blocks []egress.Block) {
	for _, b := range blocks {
		f.blocks.WithLabelValues(b.Rule).Inc()
	}
}
