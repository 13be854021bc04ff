package cli

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// trainInProcess runs all workers as goroutines of this process.
func (a *app) trainInProcess(ctx context.Context, s *settings, set *data.Set, show *screen, signals <-chan os.Signal) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	watch := watchSignals(signals, func() { close(stop) }, func() { cancel(errTwice) })
	events := keepLosses(show) // the error of the rank that failed says it all
	views, transports := collective.Local(s.workers)
	errs := make([]error, s.workers)
	var all sync.WaitGroup
	for i := range s.workers {
		all.Go(func() {
			taps := newTaps(s.flags)
			g := collective.NewGroup(views[i], collective.OverTransport(views[i], transports[i]), collective.Options{Order: s.flags.chosen(), Observer: taps.observer()})
			defer g.Close()
			if errs[i] = taps.open(views[i], i); errs[i] != nil {
				g.Abort(errs[i])
				return
			}
			defer taps.close(a.stderr)
			r := &rank{settings: s, group: g, set: set, events: events, teller: i == 0, taps: taps, stop: stop, held: true}
			if errs[i] = r.run(ctx); errs[i] != nil {
				tellLost(events, i, errs[i])
			}
		})
	}
	all.Wait()
	code := watch.end()
	for _, err := range errs {
		// The rank that failed has the plain error; the others name it.
		var told *collective.ReportedError
		if err == nil || errors.As(err, &told) || errors.Is(err, trainer.ErrStopped) {
			continue
		}
		if code != exitInterrupted {
			code = exitFailed
		}
		return &codedError{code, err}
	}
	if code != exitOK {
		return &codedError{code: code}
	}
	return errors.Join(errs...)
}
