package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/sgd"
)

// inProcesses is this process's part in a job with a process for each device: it starts
// them, or is one of them.
func (c *settings) inProcesses(p crew.Process, args []string, stdout, stderr io.Writer) error {
	return p.Run(context.Background(), crew.Part{
		Launch: func(ctx context.Context) error { return c.launch(ctx, p, args, screen{stdout, stderr}) },
		Work:   c.work,
		Stdout: stdout, Stderr: stderr,
	})
}

// launch starts a process for each device on this machine, and waits for them.
func (c *settings) launch(ctx context.Context, p crew.Process, args []string, to screen) error {
	n := c.workers * c.devices
	if err := crew.CheckWorkers(n, 1); err != nil {
		return crew.Usage(err)
	}
	local := crew.Local()
	local.Process = p
	place, err := local.Config(n, to.stderr)
	if err != nil {
		return crew.Usage(err)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, crew.StopSignals()...)
	defer signal.Stop(signals)
	return crew.Crew{
		Workers: n, Cores: runtime.NumCPU(), Place: place, Process: p, Args: args, Display: to, Signals: signals,
		Command: "distributed_sgd", Stopping: "stopping",
	}.Launch(ctx)
}

// work is what the process of a device does.
func (c *settings) work(ctx context.Context, w *crew.Worker) error {
	create, err := c.creator()
	if err != nil {
		return crew.Usage(err)
	}
	node, err := w.Join(slog.LevelError)
	if err != nil {
		return err
	}
	defer node.Close()
	group, err := w.Form(crew.JoinTimeout)
	if err != nil {
		return err
	}
	return c.join(w.Stop(), group, create)
}

// join trains with the replica of this process. Only rank 0 prints and writes.
func (c *settings) join(ctx context.Context, group *collective.Group, create sgd.Creator) error {
	mine := *c
	var stdout io.Writer = os.Stdout
	if group.Rank() > 0 {
		stdout, mine.trace, mine.out = io.Discard, "", ""
	}
	o, closeTrace, err := mine.observed(stdout)
	if err != nil {
		group.Abort(err)
		return err
	}
	s, err := sgd.Join(ctx, group, create, o)
	if err != nil {
		return errors.Join(err, closeTrace())
	}
	if err = mine.train(ctx, s, stdout); err == nil {
		err = group.Barrier(ctx) // a process that ends early would break the others' calls
	} else {
		group.Abort(err) // writing the weights may have failed here alone
	}
	return errors.Join(err, s.Close(), closeTrace())
}

// A screen shows what the processes print.
type screen struct{ stdout, stderr io.Writer }

// Emit implements event.Sink. Nothing is shown of events.
func (screen) Emit(event.Event) {}

// Log implements crew.Display.
func (s screen) Log(name string, line []byte) {
	to := s.stdout
	if name == "" { // of the launcher
		to = s.stderr
	}
	_, _ = to.Write(append(line, '\n'))
}

// Notice implements crew.Display.
func (s screen) Notice(text string) { s.Log("", []byte(text)) }
