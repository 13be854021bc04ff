package cli

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer"
)

// trainInProcess runs all workers as goroutines of this process.
func (a *app) trainInProcess(ctx context.Context, s *settings, show *screen, signals <-chan os.Signal) error {
	set, err := s.source.Open(ctx)
	if err != nil {
		return usage(err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	watch := watchSignals(signals, func() { close(stop) }, func() { cancel(errors.New("interrupted")) })
	views, transports := collective.Local(s.workers)
	errs := make([]error, s.workers)
	var all sync.WaitGroup
	for i := range s.workers {
		all.Go(func() {
			g := collective.NewGroup(views[i], collective.OverTransport(views[i], transports[i]), collective.Options{})
			defer g.Close()
			r := &rank{settings: s, group: g, set: set, events: show, teller: i == 0, stop: stop}
			if errs[i] = r.run(ctx); errs[i] != nil {
				tellLost(show, i, errs[i])
			}
		})
	}
	all.Wait()
	if code := watch.end(); code != exitOK {
		return &codedError{code: code}
	}
	for _, err := range errs {
		// The rank that failed has the plain error; the others name it.
		var told *collective.ReportedError
		if err != nil && !errors.As(err, &told) && !errors.Is(err, trainer.ErrStopped) {
			return &codedError{exitFailed, err}
		}
	}
	return errors.Join(errs...)
}
