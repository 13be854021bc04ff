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

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/membership"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// work is one worker process.
func (a *app) work(ctx context.Context, path string, f trainFlags, place cluster.Config) error {
	ctx, drop, err := launch.Lifeline(ctx)
	if err != nil {
		return usage(err)
	}
	defer drop()
	stop, free := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer free()
	events := &jsonEmitter{w: a.stdout}
	w := &worker{app: a, place: place, events: events, stop: stop}
	err = w.run(ctx, path, f)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, trainer.ErrStopped), stop.Err() != nil && !w.training.Load():
		return nil // the launcher knows what it asked for, and tells
	}
	code := exitFailed
	var coded *codedError
	var differ *trainer.SettingsError
	switch {
	case errors.As(err, &coded):
		code = coded.code
	case errors.As(err, &differ):
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
	c := w.place
	c.Log = slog.New(slog.NewTextHandler(w.app.stderr, &slog.HandlerOptions{Level: level}))
	wait := newWaiter(w.app.stderr)
	defer wait.end()
	if c.Local == 0 { // one worker of a machine says it for all
		c.Progress = wait.changed
	}
	node, err := cluster.Join(w.stop, c)
	if err != nil {
		if errors.Is(err, membership.ErrPortInUse) {
			return usage(err)
		}
		return err
	}
	defer node.Close()
	w.events.emit(&readyEvent{Event: "ready", Addr: node.Addr().String()})
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
	r := &rank{settings: s, group: group, set: set, events: w.events, teller: c.Local == 0, stop: w.stop.Done(),
		finished: func() { level.Set(slog.LevelError) }} // that others leave is no news now
	if err := r.run(ctx); err != nil {
		tellLost(w.events, group.Rank(), err)
		return err
	}
	return nil // all leave together, so nobody waits for a goodbye
}
