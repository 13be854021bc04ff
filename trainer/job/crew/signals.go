package crew

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// StopSignals returns the signals that ask a program to stop: SIGINT, SIGTERM, and
// SIGHUP unless it is ignored, as under nohup.
func StopSignals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// A SignalWatch acts on the first signal, which asks to stop, and on the second,
// which asks to stop at once.
type SignalWatch struct {
	quit chan struct{}
	done sync.WaitGroup

	mu   sync.Mutex
	last os.Signal
}

// WatchSignals calls first at the first signal that comes and second at every
// later one, in a goroutine of its own, until End is called.
func WatchSignals(signals <-chan os.Signal, first, second func()) *SignalWatch {
	w := &SignalWatch{quit: make(chan struct{})}
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

func (w *SignalWatch) note(sig os.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = sig
}

// End stops watching and returns the last signal, nil if none came. It is called
// once.
func (w *SignalWatch) End() os.Signal {
	close(w.quit)
	w.done.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}
