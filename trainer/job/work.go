package job

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/device"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// Work runs one worker of a run, in its own process. It writes warnings and log lines
// to stderr.
func Work(ctx context.Context, w *crew.Worker, f Spec, stderr io.Writer) error {
	s, err := f.Settle()
	if err != nil {
		return err
	}
	level := new(slog.LevelVar)
	_ = level.UnmarshalText([]byte(f.Watch.LogLevel)) // Check has accepted it
	taps := newTaps(f.Watch)
	w.RecordIn(s.Spec.Saving.Dir)
	w.Place.Group.Order = f.Order.HostOrder()
	onGPU, err := s.openGPU(ctx, w.Place.Local, stderr)
	if err != nil {
		return err
	}
	defer onGPU.Close() // after node.Close: its group uses the GPU
	w.Place.Engine = device.EngineOf(onGPU.Engines(), s.Spec.Place.Nodes)
	if o := taps.observer(); o != nil {
		w.Place.Group.Observer = o
	}
	w.RequireSame("--strategy", processes(&s.Spec))
	node, err := w.Join(level)
	if err != nil {
		return err
	}
	defer node.Close()
	if w.Place.Role == collective.Server {
		return workAsServer(ctx, w, s)
	}
	rows, err := s.Problem.Open(ctx)
	if err != nil {
		return crew.Usage(err)
	}
	all, err := w.Form(f.Place.JoinTimeout)
	if err != nil {
		return err
	}
	w.Begin()
	group, with, end, err := among(ctx, &s.Spec, w, all)
	if err != nil {
		return failed(w, err)
	}
	defer end()
	onGPU.Engines().TellWithout(w.Place.Local, stderr)
	defer taps.close(stderr)
	if err := taps.open(group.View(), w.Place.Local); err != nil {
		group.Abort(err)
		return crew.Usage(err)
	}
	r := &rank{
		training: s, group: group, combining: with, rows: rows, events: w.Events, leader: w.Place.Local == 0, taps: taps, secured: w.Place.KeyFile != "",
		stop: w.Stop().Done(), quit: w.Quit().Done(), pulse: w.Pulse, locked: s.Spec.Saving.lockedBy(launch.Identify(os.Getppid())),
		gpu: onGPU, gradients: shared(&s.Spec, w), finished: func() { level.Set(slog.LevelError) }, // do not warn that others leave
	}
	if err := r.run(ctx); err != nil {
		return failed(w, err)
	}
	return nil // without node.Leave: all ranks are done and end at the same time
}

// workAsServer is Work of a server process, which has joined.
func workAsServer(ctx context.Context, w *crew.Worker, s *Training) error {
	all, err := w.Form(s.Spec.Place.JoinTimeout)
	var lost *collective.RankError
	switch {
	case restarts(&s.Spec) > 0 && errors.As(err, &lost):
		// A process was lost meanwhile. If it is a server, the launchers start servers
		// again, this one too. If it is a worker, the other workers report it.
		return nil
	case err != nil:
		return err
	}
	w.Begin()
	if restarts(&s.Spec) > 0 {
		err = serveKept(ctx, w, all, s.optimizer)
	} else {
		err = serve(ctx, s, all, newSurvivors(&s.Spec, w))
	}
	if err != nil {
		return failed(w, err)
	}
	return nil
}

// failed reports which rank was lost, if err says so, and returns err.
func failed(w *crew.Worker, err error) error {
	crew.TellLost(w.Events, w.Group().Rank(), err)
	var broken *collective.RankError
	if errors.As(err, &broken) {
		w.DumpFlight()
	}
	return err
}
