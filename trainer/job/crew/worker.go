package crew

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/membership"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// stepDelay is how long step events may be held back before the launcher gets them.
const stepDelay = 50 * time.Millisecond

// usageCode is the code of event.Failed for a mistake of the user.
const usageCode = 2

// A Worker is this process as one worker of a job. Its methods are called in one
// goroutine: Join, then Form, then Begin.
type Worker struct {
	Place  cluster.Config // where it joins; may be changed before Join
	Events event.Sink     // to the launcher
	Pulse  *Pulse         // whether this worker makes progress

	stop, quit context.Context
	formed     atomic.Bool // all workers have joined and connected
	training   atomic.Bool // Begin was called
	flight     flightRecorder
	strategy   switchboard
	wait       *waitReporter
	node       *cluster.Node // of the newest group; set by Join
	level      slog.Leveler  // of log lines; set by Join
	stderr     io.Writer
}

// Stop returns a context that ends when the worker is asked to stop, which it does
// after the step in progress.
func (w *Worker) Stop() context.Context { return w.stop }

// Quit returns a context that ends when the worker is asked a second time. The worker
// gives up retries.
func (w *Worker) Quit() context.Context { return w.quit }

// runWorker runs one worker process from its start to its end. The process ends with its
// launcher, turns signals into Stop and Quit, and reports to the launcher why it fails.
func runWorker(ctx context.Context, place cluster.Config, part Part) error {
	ctx, drop, err := launch.Lifeline(ctx)
	if err != nil {
		return Usage(err)
	}
	defer drop()
	stop, asked := context.WithCancel(ctx)
	defer asked()
	quit, forced := context.WithCancel(ctx)
	defer forced()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, StopSignals()...)
	defer signal.Stop(signals)
	defer WatchSignals(signals, asked, forced).End()
	events := event.NewWriter(part.Stdout, stepDelay)
	defer events.Flush()
	w := &Worker{Place: place, Events: events, Pulse: NewPulse(), stop: stop, quit: quit, flight: flightRecorder{stderr: part.Stderr}, wait: newWaitReporter(part.Stderr), stderr: part.Stderr}
	defer w.wait.end()
	defer w.flight.onQuit()()
	beating, still := context.WithCancel(ctx)
	var beats sync.WaitGroup
	defer beats.Wait()
	defer still()
	beats.Go(func() {
		pollProgress(beating, stop.Done(), func() {
			if makesProgress(w.Pulse, w.flight.group.Load()) {
				events.Emit(&event.Progress{})
			}
		})
	})
	return w.report(part.Work(ctx, w))
}

// report sends err to the launcher if it is a failure, and returns the error of Run.
func (w *Worker) report(err error) error {
	asked := w.stop.Err() != nil
	early := asked && !w.formed.Load()
	switch {
	case early && w.Place.Role == collective.Server:
		return nil // the workers decide; if they need servers, this one is started again
	case early:
		err = ErrEarly
	case err == nil, errors.Is(err, membership.ErrExpelled): // the others have reported its loss
		return nil
	case errors.Is(err, trainer.ErrStopped), asked && !w.training.Load():
		return nil // the launcher passed the signal on, and reports it to the user
	case w.quit.Err() != nil && errors.Is(err, context.Canceled):
		return nil // the launcher ended the job at once, and knows why
	}
	code, usage := 1, isUsage(err)
	if usage {
		code = usageCode
	}
	w.Events.Emit(&event.Failed{Name: fmt.Sprintf("%s/%d", w.Place.Node, w.Place.Local), Code: code, Error: err.Error(), Early: early})
	return &EndError{Usage: usage, Begun: w.training.Load()}
}

// Join begins to look for the other workers, and tells the launcher where this one
// gossips. Logs from level on go to stderr.
func (w *Worker) Join(level slog.Leveler) (*cluster.Node, error) {
	w.level = level
	node, err := cluster.Join(w.stop, w.config())
	if err != nil {
		if errors.Is(err, membership.ErrPortInUse) {
			return nil, Usage(err)
		}
		return nil, err
	}
	w.node = node
	w.Events.Emit(&event.Ready{Addr: node.Addr().String()})
	return node, nil
}

// answer answers a question that came by gossip; nil if it knows no answer.
func (w *Worker) answer(question []byte) []byte {
	if answer := w.flight.answer(question); answer != nil {
		return answer
	}
	return w.strategy.answer(string(question))
}

// config returns how this process joins others.
func (w *Worker) config() cluster.Config {
	c := w.Place
	c.Log = slog.New(slog.NewTextHandler(w.stderr, &slog.HandlerOptions{Level: w.level}))
	if c.Local == 0 { // the first worker of a machine reports for all
		c.Progress = w.wait.changed
	}
	c.Answer = w.answer
	return c
}

// RequireSame names a setting that must have the same value in all processes of the job.
// Otherwise Form fails in all of them. Call it before Join.
func (w *Worker) RequireSame(name, value string) {
	w.Place.Same = append(w.Place.Same, membership.Setting{Name: name, Value: value})
}

// Begin reports that the work begins. From then on the work decides when to stop, and
// errors after a signal are reported.
func (w *Worker) Begin() { w.training.Store(true) }

// Shared returns memory for n numbers that the other workers of this machine can read
// and write in place; nil if there is none. Join comes first.
func (w *Worker) Shared(n int) []float32 {
	if w.Place.Transport == cluster.TransportTCP || w.Place.LocalSize < 2 {
		return nil
	}
	v, err := w.node.Alloc(collective.Float32, n)
	if err != nil {
		return nil
	}
	return collective.Elements[float32](v)
}

// RecordIn sets the directory that DumpFlight writes to; "" is the system's directory
// for temporary files.
func (w *Worker) RecordIn(dir string) { w.flight.dir = dir }

// DumpFlight saves the group's flight record, and says where on stderr.
func (w *Worker) DumpFlight() { w.flight.dump() }

// Alloc returns memory that the other workers of this machine can read and write in
// place; see cluster.Node.Alloc. Join comes first.
func (w *Worker) Alloc(t collective.DType, n int) (collective.Vector, error) {
	return w.node.Alloc(t, n)
}
