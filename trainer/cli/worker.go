package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// A worker is one worker process of a command.
type worker struct {
	*crew.Worker
	app *app
}

// train is one worker of a training.
func (w *worker) train(ctx context.Context, path string, f trainFlags) error {
	s, err := w.app.settle(path, f)
	if err != nil {
		return err
	}
	level := new(slog.LevelVar)
	_ = level.UnmarshalText([]byte(f.logLevel)) // check has seen that it is one
	taps := newTaps(f)
	w.RecordIn(f.out)
	w.Place.Group.Order = f.HostOrder()
	onGPU, err := s.openGPU(ctx, w.Place.Local, w.app.stderr)
	if err != nil {
		return err
	}
	defer onGPU.close() // after the node, whose group works there
	w.Place.Engine = engineOf(onGPU.engines(), s.flags.Nodes)
	if o := taps.observer(); o != nil {
		w.Place.Group.Observer = o
	}
	node, err := w.Join(level)
	if err != nil {
		return err
	}
	defer node.Close()
	set, err := s.source.Open(ctx)
	if err != nil {
		return usage(err)
	}
	group, err := w.Form(f.JoinTimeout)
	if err != nil {
		return err
	}
	w.Begin()
	onGPU.engines().tellWithout(w.Place.Local, w.app.stderr)
	if err := taps.open(group.View(), w.Place.Local); err != nil {
		group.Abort(err)
		return usage(err)
	}
	defer taps.close(w.app.stderr)
	r := &rank{settings: s, group: group, set: set, events: w.Events, teller: w.Place.Local == 0, stop: w.Stop().Done(), quit: w.Quit().Done(), pulse: w.Pulse, held: s.flags.heldBy(launch.Identify(os.Getppid())), taps: taps, secured: w.Place.KeyFile != "",
		gpu: onGPU, gradients: w.Shared, finished: func() { level.Set(slog.LevelError) }} // that others leave is no news now
	if err := r.run(ctx); err != nil {
		crew.TellLost(w.Events, group.Rank(), err)
		var broken *collective.RankError
		if errors.As(err, &broken) {
			w.DumpFlight()
		}
		return err
	}
	return nil // all leave together, so nobody waits for a goodbye
}
