package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

// outliveReaders lets a command finish after the reader of its output is gone, until restore:
// a write to a closed pipe fails instead of killing the process.
func outliveReaders() (restore func()) {
	unread := make(chan os.Signal, 1)
	signal.Notify(unread, syscall.SIGPIPE)
	return func() { signal.Stop(unread) }
}

// untilSignal runs a command that only observes, until it ends or a signal stops it.
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

// stopSignals returns a channel of the signals that stop a command, until done is called.
func stopSignals() (signals chan os.Signal, done func()) {
	signals = make(chan os.Signal, 4)
	signal.Notify(signals, crew.StopSignals()...)
	return signals, func() { signal.Stop(signals) }
}
