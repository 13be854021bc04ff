package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/secret"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/device"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// crewAt returns a crew of workers for a measurement.
func crewAt(place cluster.Config, workers int, p crew.Process, o job.Options) crew.Crew {
	return crew.Crew{
		Workers: workers, Cores: runtime.NumCPU(), Place: place, Process: p, Args: o.Args, Kinds: Events(),
		Display: o.Display, Signals: o.Signals, Command: o.Command, Stopping: "stopping", Environ: job.Environ(place, device.Placement{}, o.Cache),
	}
}

// measureWith joins, within timeout, and runs one rank's part of a measurement.
func measureWith(w *crew.Worker, o collective.Order, timeout time.Duration, run func(context.Context, *collective.Group) error) error {
	w.Place.Group.Order = o
	node, err := w.Join(slog.LevelError)
	if err != nil {
		return err
	}
	defer node.Close()
	group, err := w.Form(timeout)
	if err != nil {
		return err
	}
	if r := node.Calibration(); r.Ranks > 0 && w.Place.Local == 0 {
		w.Events.Emit(&Calibrated{Report: r})
	}
	return run(w.Stop(), group)
}

// stopped reports to the launcher that the ranks have stopped, if that caused err.
func stopped(w *crew.Worker, err error) error {
	if err != nil && (w.Stop().Err() != nil || cancelled(err)) {
		w.Events.Emit(&event.Stopped{})
		return nil
	}
	return err
}

// inProcess runs all ranks of a measurement as goroutines of this process.
func inProcess(ctx context.Context, ranks int, order collective.Order, o job.Options, run func(context.Context, *collective.Group) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := crew.WatchSignals(o.Signals, func() {
		fmt.Fprintln(o.Stderr, "stopping")
		cancel()
	}, func() {})
	views, transports := collective.Local(ranks)
	errs := make([]error, ranks)
	var all sync.WaitGroup
	for i := range ranks {
		all.Go(func() {
			g := collective.NewGroup(views[i], collective.OverTransport(views[i], transports[i]), collective.Options{Order: order})
			defer g.Close()
			errs[i] = run(ctx, g)
		})
	}
	all.Wait()
	if sig := watch.End(); sig != nil {
		return &crew.EndError{Signal: sig}
	}
	for _, err := range errs {
		var reported *collective.ReportedError
		if err != nil && !errors.As(err, &reported) {
			return err // of the rank that failed; the errors of the others only name it
		}
	}
	return errors.Join(errs...)
}

// cancelled reports whether a call failed because this or another rank was asked to
// stop.
func cancelled(err error) bool {
	var lost *collective.RankError
	return errors.As(err, &lost) && lost.Phase == "cancelled"
}

// temporaryKey writes a new key to a temporary file. remove deletes it.
func temporaryKey() (path string, remove func() error, err error) {
	dir, err := os.MkdirTemp("", "ringtrain-key-")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, "job.key")
	if err := secret.WriteFile(path, secret.New()); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return path, func() error { return os.RemoveAll(dir) }, nil
}
