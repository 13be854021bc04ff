package trace

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer"
)

// Metrics counts a rank's activity for Prometheus. It observes a Group
// (collective.FlightObserver) and Train (trainer.Observer).
type Metrics struct {
	registry *prometheus.Registry
	register prometheus.Registerer // adds the rank

	calls, bytes, seconds, failures *prometheus.CounterVec // by kind
	waits                           *prometheus.CounterVec // by peer and cause
	steps, rows                     prometheus.Counter
	stages                          *prometheus.CounterVec
	loss                            prometheus.Gauge
	results                         map[string]prometheus.Gauge // of evaluations, by metric; of Train's goroutine
	step                            prometheus.Histogram
}

var _ collective.FlightObserver = (*Metrics)(nil)

// NewMetrics returns the metrics of a rank, all zero.
func NewMetrics(rank int) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), results: map[string]prometheus.Gauge{}}
	labels := prometheus.Labels{"rank": strconv.Itoa(rank)}
	m.register = prometheus.WrapRegistererWith(labels, m.registry)
	vec := func(name, help string, by ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ringtrain_" + name, Help: help}, by)
		m.register.MustRegister(v)
		return v
	}
	m.calls = vec("calls_total", "Completed collective calls.", "kind")
	m.bytes = vec("call_bytes_total", "Bytes in the vectors of collective calls.", "kind")
	m.seconds = vec("call_seconds_total", "Time in collective calls.", "kind")
	m.failures = vec("call_failures_total", "Collective calls that failed.", "kind")
	m.waits = vec("wait_seconds_total", "Time that collective calls waited for a peer: late_to_call until its first message, slow_to_move after that.", "peer", "cause")
	m.stages = vec("step_stage_seconds_total", "Time of training steps by stage: compute, exchange, update.", "stage")
	m.steps = prometheus.NewCounter(prometheus.CounterOpts{Name: "ringtrain_steps_total", Help: "Training steps."})
	m.rows = prometheus.NewCounter(prometheus.CounterOpts{Name: "ringtrain_rows_total", Help: "Rows that all ranks together have trained on."})
	m.loss = prometheus.NewGauge(prometheus.GaugeOpts{Name: "ringtrain_loss", Help: "Mean loss over the rows of the last step."})
	m.step = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "ringtrain_step_seconds", Help: "Time of a training step.", Buckets: prometheus.ExponentialBuckets(1e-4, 2, 20),
	})
	m.register.MustRegister(m.steps, m.rows, m.loss, m.step)
	return m
}

// ServeHTTP serves all metrics in Prometheus' text format.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}

// Called is part of collective.Observer. It does nothing, because Recorded reports more.
func (m *Metrics) Called(collective.Call, uint64, uint64, time.Duration, error) {}

// Recorded is part of collective.FlightObserver.
func (m *Metrics) Recorded(c *collective.FlightCall) {
	kind := c.Call.Kind.String()
	m.calls.WithLabelValues(kind).Inc()
	m.bytes.WithLabelValues(kind).Add(float64(bytesOf(c.Call)))
	m.seconds.WithLabelValues(kind).Add(c.Took.Seconds())
	if c.Err != nil {
		m.failures.WithLabelValues(kind).Inc()
	}
	for _, w := range c.Waits {
		peer := strconv.Itoa(w.Rank)
		m.waits.WithLabelValues(peer, "late_to_call").Add(w.Late.Seconds())
		m.waits.WithLabelValues(peer, "slow_to_move").Add(w.Slow.Seconds())
	}
}

// Stepped is part of trainer.Observer.
func (m *Metrics) Stepped(e trainer.StepEvent) {
	m.steps.Inc()
	m.rows.Add(float64(e.Weight))
	m.loss.Set(e.Loss)
	m.step.Observe((e.Compute + e.Exchange + e.Update).Seconds())
	for stage, took := range map[string]time.Duration{"compute": e.Compute, "exchange": e.Exchange, "update": e.Update} {
		m.stages.WithLabelValues(stage).Add(took.Seconds())
	}
}

// Evaluated is part of trainer.Observer. Each metric of the task is a gauge with its name.
func (m *Metrics) Evaluated(e trainer.EvalEvent) {
	for _, one := range e.Metrics {
		if g := m.result(one.Name); g != nil {
			g.Set(one.Value)
		}
	}
}

// result returns the gauge of a metric, or nil if Prometheus cannot have one of that name.
func (m *Metrics) result(name string) prometheus.Gauge {
	g, known := m.results[name]
	if !known {
		g = prometheus.NewGauge(prometheus.GaugeOpts{Name: "ringtrain_" + metricName(name), Help: "The " + name + " at the last evaluation."})
		if m.register.Register(g) != nil {
			g = nil // another metric has the name
		}
		m.results[name] = g
	}
	return g
}

// metricName replaces what Prometheus does not allow in a name.
func metricName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}
