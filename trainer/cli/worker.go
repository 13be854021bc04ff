package cli

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// work is one worker process of a training.
func (a *app) work(ctx context.Context, path string, f trainFlags, place cluster.Config) error {
	return a.asWorker(ctx, place, func(ctx context.Context, w *worker) error { return w.run(ctx, path, f) })
}

// asWorker is one worker process: it ends with its launcher, learns of signals
// and tells the launcher why it fails.
func (a *app) asWorker(ctx context.Context, place cluster.Config, run func(context.Context, *worker) error) error {
	ctx, drop, err := launch.Lifeline(ctx)
	if err != nil {
		return usage(err)
	}
	defer drop()
	stop, asked := context.WithCancel(ctx)
	defer asked()
	quit, forced := context.WithCancel(ctx)
	defer forced()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, endings()...)
	defer signal.Stop(signals)
	defer watchSignals(signals, asked, forced).end()
	events := &jsonEmitter{w: a.stdout, patience: stepPatience}
	defer events.flush()
	beating, still := context.WithCancel(ctx)
	var beats sync.WaitGroup
	defer beats.Wait()
	defer still()
	w := &worker{pulse: &pulse{last: time.Now()}, app: a, place: place, events: events, stop: stop, quit: quit, flights: flights{stderr: a.stderr}}
	defer w.flights.onQuit()()
	beats.Go(func() {
		everyBeat(beating, stop.Done(), func() {
			if getsOn(w.pulse, w.flights.group.Load()) {
				events.emit(&progressEvent{Event: "progress"})
			}
		})
	})
	err = run(ctx, w)
	early := stop.Err() != nil && !w.formed.Load()
	switch {
	case early:
		err = errEarly
	case err == nil:
		return nil
	case errors.Is(err, trainer.ErrStopped), stop.Err() != nil && !w.training.Load():
		return nil // the launcher knows what it asked for, and tells
	}
	code := workerCode(err)
	events.emit(&failedEvent{Event: "failed", Name: fmt.Sprintf("%s/%d", place.Node, place.Local), Code: code, Error: err.Error(), Early: early})
	return &codedError{code: code}
}

// stepPatience is for how long a worker's launcher may not hear of steps.
const stepPatience = 50 * time.Millisecond

type worker struct {
	app      *app
	place    cluster.Config
	events   emitter
	stop     context.Context // ends when this worker is asked to stop
	quit     context.Context // ends when it is asked a second time
	formed   atomic.Bool     // the others are there
	training atomic.Bool     // the group is formed; stopping is a wish from now on
	flights  flights
	pulse    *pulse
	taps     *taps         // nil: nobody looks on
	node     *cluster.Node // once it has joined
}

func (w *worker) run(ctx context.Context, path string, f trainFlags) error {
	s, err := w.app.settle(path, f)
	if err != nil {
		return err
	}
	level := new(slog.LevelVar)
	_ = level.UnmarshalText([]byte(f.logLevel)) // check has seen that it is one
	wait := newWaiter(w.app.stderr)
	defer wait.end()
	w.flights.dir, w.taps = f.out, newTaps(f)
	w.place.Group.Order = f.chosen()
	onGPU, err := s.openGPU(ctx, w.place.Local, w.app.stderr)
	if err != nil {
		return err
	}
	defer onGPU.close() // after the node, whose group works there
	w.place.Engine = engineOf(onGPU.engines(), s.flags.nodes)
	node, err := w.join(level, wait)
	if err != nil {
		return err
	}
	defer node.Close()
	set, err := s.source.Open(ctx)
	if err != nil {
		return usage(err)
	}
	group, err := w.form(node, wait, f.joinTimeout)
	if err != nil {
		return err
	}
	w.training.Store(true)
	if err := w.taps.open(group.View(), w.place.Local); err != nil {
		group.Abort(err)
		return usage(err)
	}
	defer w.taps.close(w.app.stderr)
	r := &rank{settings: s, group: group, set: set, events: w.events, teller: w.place.Local == 0, stop: w.stop.Done(), quit: w.quit.Done(), pulse: w.pulse, held: s.flags.heldBy(launch.Identify(os.Getppid())), taps: w.taps, secured: w.place.KeyFile != "",
		gpu: onGPU, gradients: w.gradients, finished: func() { level.Set(slog.LevelError) }} // that others leave is no news now
	if err := r.run(ctx); err != nil {
		tellLost(w.events, group.Rank(), err)
		var broken *collective.RankError
		if errors.As(err, &broken) {
			w.flights.dump()
		}
		return err
	}
	return nil // all leave together, so nobody waits for a goodbye
}

// join begins to look for the other workers, and tells the launcher where.
func (w *worker) join(level slog.Leveler, wait *waiter) (*cluster.Node, error) {
	c := w.place
	c.Log = slog.New(slog.NewTextHandler(w.app.stderr, &slog.HandlerOptions{Level: level}))
	if c.Local == 0 { // one worker of a machine says it for all
		c.Progress = wait.changed
	}
	c.Answer = w.flights.answer
	if o := w.taps.observer(); o != nil { // bench scaling has an observer of its own
		c.Group.Observer = o
	}
	node, err := cluster.Join(w.stop, c)
	if err != nil {
		if errors.Is(err, membership.ErrPortInUse) {
			return nil, usage(err)
		}
		return nil, err
	}
	w.node = node
	w.events.emit(&readyEvent{Event: "ready", Addr: node.Addr().String()})
	return node, nil
}

// gradients is memory for n gradients that the other workers of this machine
// reach in place; nil where there is none, and ordinary memory does.
func (w *worker) gradients(n int) []float32 {
	if w.place.Transport == cluster.TransportTCP || w.place.LocalSize < 2 {
		return nil
	}
	v, err := w.node.Alloc(collective.Float32, n)
	if err != nil {
		return nil
	}
	return collective.Elements[float32](v)
}
