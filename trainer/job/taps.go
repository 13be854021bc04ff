package job

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/trace"
)

// Watch says how to observe the workers besides events.
type Watch struct {
	Trace    string // directory of a Chrome trace of each rank, trace-RANK.json; "" for none
	Metrics  string // ADDRESS:PORT of the Prometheus metrics of the first worker, the second at the next port, and so on; "" for none
	LogLevel string // lowest level of log lines: debug, info, warn or error
	First    bool   // evaluate after the first step, and from there as often as the config says
}

// A tap observes the calls and steps of one rank.
type tap interface {
	collective.FlightObserver
	trainer.Observer
}

// taps are the taps of one rank that --trace and --metrics ask for. A Group gets them
// before its rank is known; they are opened before its first call. A nil *taps does
// nothing.
type taps struct {
	dir, addr string

	all     []tap
	file    *os.File
	chrome  *trace.Chrome
	server  *http.Server
	serving sync.WaitGroup
}

// newTaps returns taps that are not open yet, or nil if f asks for none.
func newTaps(f Watch) *taps {
	if f.Trace == "" && f.Metrics == "" {
		return nil
	}
	return &taps{dir: f.Trace, addr: f.Metrics}
}

// check reports the first mistake in f alone.
func (f *Watch) check() error {
	if f.Metrics == "" {
		return nil
	}
	return CheckMetrics(f.Metrics)
}

// CheckMetrics reports why an address cannot be Watch.Metrics.
func CheckMetrics(addr string) error {
	if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
		return fmt.Errorf("--metrics must be ADDRESS:PORT, such as 127.0.0.1:9400, not %q", addr)
	} else if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("the port of --metrics must be a number from 1 to 65535, not %q", addr)
	}
	return nil
}

// checkMetrics reports, before anything starts, whether the metrics ports of the workers that
// this process launches are free. Those of all workers of this machine are consecutive.
func (f *Watch) checkMetrics(workers int, p crew.Process) error {
	if f.Metrics == "" {
		return nil
	}
	for local := range workers {
		if p.Launched != nil && p.Launched.Local != local {
			continue // another process launches it, and may be testing its port now
		}
		l, err := listenMetrics(f.Metrics, local)
		if err == nil {
			err = l.Close()
		}
		if err != nil {
			return fmt.Errorf("--metrics %s: worker %d of %d cannot serve there: %w", f.Metrics, local, workers, err)
		}
	}
	return nil
}

// listenMetrics opens the metrics port of worker local of this machine.
func listenMetrics(addr string, local int) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	return net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(n+local)))
}

// open opens the taps of the rank of v, worker local of this machine.
func (t *taps) open(v collective.View, local int) error {
	if t == nil {
		return nil
	}
	if t.dir != "" {
		f, err := os.Create(filepath.Join(t.dir, fmt.Sprintf("trace-%d.json", v.Self)))
		if err != nil {
			return fmt.Errorf("--trace: %w", err)
		}
		t.file, t.chrome = f, trace.NewChrome(f, v.Self, v.Name(v.Self))
		t.all = append(t.all, t.chrome)
	}
	if t.addr != "" {
		if err := t.serve(v.Self, local); err != nil {
			return fmt.Errorf("--metrics: %w", err)
		}
	}
	return nil
}

// serve serves metrics until close.
func (t *taps) serve(rank, local int) error {
	l, err := listenMetrics(t.addr, local)
	if err != nil {
		return err
	}
	m := trace.NewMetrics(rank)
	mux := http.NewServeMux()
	mux.Handle("/metrics", m)
	t.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	t.serving.Go(func() { _ = t.server.Serve(l) })
	t.all = append(t.all, m)
	return nil
}

// close closes the taps, also after open has failed. It only warns if a trace is incomplete, because that does not
// affect the training.
func (t *taps) close(stderr io.Writer) {
	if t == nil {
		return
	}
	if t.server != nil {
		_ = t.server.Close()
		t.serving.Wait()
	}
	if t.file != nil {
		if err := errors.Join(t.chrome.Close(), t.file.Close()); err != nil {
			fmt.Fprintf(stderr, "ringtrain: warning: the trace is incomplete: %v\n", err)
		}
	}
}

// observer returns t for a Group, or nil.
func (t *taps) observer() collective.Observer {
	if t == nil {
		return nil
	}
	return t
}

// observers returns an observer for Train that includes other, which may be nil.
func (t *taps) observers(other trainer.Observer) trainer.Observer {
	if t == nil {
		return other
	}
	all := fanOut{}
	for _, one := range t.all {
		all = append(all, one)
	}
	if other != nil {
		all = append(all, other)
	}
	return all
}

var _ collective.FlightObserver = (*taps)(nil)

// Called implements collective.Observer.
func (t *taps) Called(c collective.Call, seq, step uint64, took time.Duration, err error) {
	for _, one := range t.all {
		one.Called(c, seq, step, took, err)
	}
}

// Recorded implements collective.FlightObserver.
func (t *taps) Recorded(c *collective.FlightCall) {
	for _, one := range t.all {
		one.Recorded(c)
	}
}

// A fanOut passes events on to several observers.
type fanOut []trainer.Observer

func (all fanOut) Stepped(e trainer.StepEvent) {
	for _, o := range all {
		o.Stepped(e)
	}
}

func (all fanOut) Evaluated(e trainer.EvalEvent) {
	for _, o := range all {
		o.Evaluated(e)
	}
}
