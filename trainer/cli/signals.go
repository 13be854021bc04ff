package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// endings are the signals by which a command is asked to stop. A terminal that
// goes away asks too, unless it was said that it may (nohup).
func endings() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

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
	signal.Notify(signals, endings()...)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := watchSignals(signals, cancel, func() {})
	err := run(ctx)
	if code := watch.end(); code != exitOK {
		return &codedError{code: code}
	}
	return err
}

// A signalWatch turns the first signal into a wish to stop and the second into
// the end.
type signalWatch struct {
	quit chan struct{}
	done sync.WaitGroup

	mu   sync.Mutex
	code int
}

// watchSignals calls first at the first signal and second at the second, until
// end is called.
func watchSignals(signals <-chan os.Signal, first, second func()) *signalWatch {
	w := &signalWatch{quit: make(chan struct{})}
	w.done.Go(func() {
		for n := 0; ; n++ {
			select {
			case sig := <-signals:
				w.note(sig)
				if n == 0 {
					first()
				} else {
					second()
				}
			case <-w.quit:
				return
			}
		}
	})
	return w
}

func (w *signalWatch) note(sig os.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.code = exitInterrupted
	if sig != os.Interrupt {
		w.code = exitTerminated
	}
}

// end stops watching and returns the exit code that the signals ask for, 0 if
// there were none.
func (w *signalWatch) end() int {
	close(w.quit)
	w.done.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.code
}
