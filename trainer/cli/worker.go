package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/ringtrain/ringtrain/bench"
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
	stop, free := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer free()
	events := &jsonEmitter{w: a.stdout}
	w := &worker{app: a, place: place, events: events, stop: stop}
	err = run(ctx, w)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, trainer.ErrStopped), stop.Err() != nil && !w.training.Load():
		return nil // the launcher knows what it asked for, and tells
	}
	code := exitFailed
	var coded *codedError
	var settings *trainer.SettingsError
	var spec *bench.SpecError
	switch {
	case errors.As(err, &coded):
		code = coded.code
	case errors.As(err, &settings), errors.As(err, &spec):
		code = exitUsage
	}
	events.emit(&failedEvent{Event: "failed", Name: fmt.Sprintf("%s/%d", place.Node, place.Local), Code: code, Error: err.Error()})
	return &codedError{code: code}
}

type worker struct {
	app      *app
	place    cluster.Config
	events   emitter
	stop     context.Context // ends when this worker is asked to stop
	training atomic.Bool     // the group is formed; stopping is a wish from now on
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
	node, err := w.join(level, wait)
	if err != nil {
		return err
	}
	defer node.Close()
	set, err := s.source.Open(ctx)
	if err != nil {
		return usage(err)
	}
	group, err := node.Group(w.stop)
	if err != nil {
		return err
	}
	wait.end()
	w.training.Store(true)
	r := &rank{settings: s, group: group, set: set, events: w.events, teller: w.place.Local == 0, stop: w.stop.Done(),
		finished: func() { level.Set(slog.LevelError) }} // that others leave is no news now
	if err := r.run(ctx); err != nil {
		tellLost(w.events, group.Rank(), err)
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
	node, err := cluster.Join(w.stop, c)
	if err != nil {
		if errors.Is(err, membership.ErrPortInUse) {
			return nil, usage(err)
		}
		return nil, err
	}
	w.events.emit(&readyEvent{Event: "ready", Addr: node.Addr().String()})
	return node, nil
}
