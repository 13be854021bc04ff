package cli

import (
	"context"
	"errors"
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

// untilSignal runs a command that only observes, until it ends or a signal stops it. After a
// signal, it drops the command's error, which would only report the interruption.
func untilSignal(ctx context.Context, run func(context.Context) error) error {
	err := serveUntilSignal(ctx, run)
	var end *crew.EndError
	if errors.As(err, &end) {
		end.Err = nil
	}
	return err
}

// serveUntilSignal runs a command that keeps data, until it ends or a signal stops it. Its
// error after the signal says what was lost.
func serveUntilSignal(ctx context.Context, run func(context.Context) error) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, crew.StopSignals()...)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := crew.WatchSignals(signals, cancel, func() {})
	err := run(ctx)
	if sig := watch.End(); sig != nil {
		return &crew.EndError{Signal: sig, Err: err}
	}
	return err
}

// stopSignals returns a channel of the signals that stop a command, until done is called.
func stopSignals() (signals chan os.Signal, done func()) {
	signals = make(chan os.Signal, 4)
	signal.Notify(signals, crew.StopSignals()...)
	return signals, func() { signal.Stop(signals) }
}
