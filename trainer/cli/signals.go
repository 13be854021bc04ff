package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

// outliveReaders lets a command finish although nobody reads what it prints any
// more, until restore: a write to a closed pipe fails then, and does not kill the
// process.
func outliveReaders() (restore func()) {
	unread := make(chan os.Signal, 1)
	signal.Notify(unread, syscall.SIGPIPE)
	return func() { signal.Stop(unread) }
}

// untilSignal runs what only looks on, until it is done or somebody asks to stop.
func untilSignal(ctx context.Context, run func(context.Context) error) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, crew.StopSignals()...)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := crew.WatchSignals(signals, cancel, func() {})
	err := run(ctx)
	if sig := watch.End(); sig != nil {
		return &crew.EndError{Signal: sig}
	}
	return err
}

// stopSignals is a channel of the signals that ask a command to stop, until done.
func stopSignals() (signals chan os.Signal, done func()) {
	signals = make(chan os.Signal, 4)
	signal.Notify(signals, crew.StopSignals()...)
	return signals, func() { signal.Stop(signals) }
}
