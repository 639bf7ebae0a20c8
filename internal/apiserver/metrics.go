package apiserver

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// unmatched is the label of every request that no row answers, so that what a
// caller sends never becomes a label.
const unmatched = "unmatched"

type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

func newMetrics(reg *prometheus.Registry, table []*route, visitors *crowd) *metrics {
	m := &metrics{
		requests: register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tapin_http_requests_total", Help: "Requests answered on the control listener.",
		}, []string{"route", "class"})),
		seconds: register(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tapin_http_request_seconds", Help: "Time to answer a request, streams excepted.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 90},
		}, []string{"route"})),
		inFlight: register(reg, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tapin_http_in_flight", Help: "Requests being answered now.",
		})),
	}
	register(reg, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tapin_http_connections", Help: "Open connections to the control listener.",
	}, func() float64 { return float64(visitors.size()) }))
	register(reg, collectors.NewGoCollector())
	register(reg, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, row := range table {
		m.requests.WithLabelValues(row.label(), "2xx") // a route never called shows as zero
	}
	return m
}

// register returns the collector already there, if another part of the process
// brought the same one.
func register[C prometheus.Collector](reg *prometheus.Registry, c C) C {
	err := reg.Register(c)
	if there, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if same, ok := there.ExistingCollector.(C); ok {
			return same
		}
	}
	return c
}

func (m *metrics) observe(row *route, status int, took time.Duration) {
	label := unmatched
	if row != nil {
		label = row.label()
	}
	class := "none" // cut off before the answer began
	if status != 0 {
		class = strconv.Itoa(status/100) + "xx"
	}
	m.requests.WithLabelValues(label, class).Inc()
	if row == nil || !row.stream {
		m.seconds.WithLabelValues(label).Observe(took.Seconds())
	}
}
