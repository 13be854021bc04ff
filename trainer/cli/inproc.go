package cli

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// trainInProcess runs all workers as goroutines of this process.
func (a *app) trainInProcess(ctx context.Context, s *settings, set *data.Set, show *screen, signals <-chan os.Signal) error {
	ctx, f := newForcible(ctx)
	defer f.cancel(nil)
	watch := watchSignals(signals, f.ask, func() { f.force(errTwice) })
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
			r := &rank{settings: s, group: g, set: set, events: events, teller: i == 0, taps: taps, stop: f.stop, held: true, pulse: &pulse{last: time.Now()}}
			defer f.ranks.add(i, r.pulse, g)()
			if errs[i] = r.run(ctx); errs[i] != nil {
				tellLost(events, i, errs[i])
			}
		})
	}
	ended := f.wait(ctx, &all)
	code := watch.end()
	if !ended { // errs may still be written
		if code != exitInterrupted {
			code = exitFailed
		}
		return &codedError{code, tooSlow(ctx)}
	}
	return verdictOf(errs, tooSlow(ctx), code)
}

// verdictOf is the error of a job of goroutines, and what the signals that came
// ask for.
func verdictOf(errs []error, slow error, code int) error {
	for _, err := range append([]error{slow}, errs...) {
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
