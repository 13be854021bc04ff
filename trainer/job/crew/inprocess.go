package crew

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer"
)

// A ranksVigil is a vigil over ranks of this process.
type ranksVigil struct {
	mu    sync.Mutex
	seen  vigil
	ranks map[string]func() bool // whether it makes progress
}

// add adds a rank, until it is removed.
func (v *ranksVigil) add(rank int, p *Pulse, g *collective.Group) (remove func()) {
	name := fmt.Sprintf("rank %d", rank)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ranks[name] = func() bool { return getsOn(p, g) }
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.ranks, name)
		delete(v.seen, name)
	}
}

// look is stuck, now.
func (v *ranksVigil) look() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	for name, on := range v.ranks {
		if _, known := v.seen[name]; !known || on() {
			v.seen[name] = now
		}
	}
	return v.seen.stuck(now)
}

// A Seat is the place of one rank among the goroutines of InProcess.
type Seat struct {
	Rank int
	Stop <-chan struct{} // closed when the job is asked to stop

	ranks *ranksVigil
}

// Watch ends the job by force if, after it was asked to stop, neither p nor the calls of
// g show progress. It watches until remove is called.
func (s *Seat) Watch(p *Pulse, g *collective.Group) (remove func()) { return s.ranks.add(s.Rank, p, g) }

// InProcess runs ranks as goroutines of this process and waits for them. It returns the
// error of the rank that failed, not of those that noticed. The first signal closes
// Seat.Stop; the second one, or a lack of progress, cancels their context. The error is
// an *EndError if a rank failed or a signal came.
func InProcess(ctx context.Context, ranks int, signals <-chan os.Signal, run func(context.Context, *Seat) error) error {
	ctx, f := newForcible(ctx)
	defer f.cancel(nil)
	watch := WatchSignals(signals, f.ask, func() { f.force(ErrTwice) })
	errs := make([]error, ranks)
	var all sync.WaitGroup
	for i := range ranks {
		all.Go(func() { errs[i] = run(ctx, &Seat{Rank: i, Stop: f.stop, ranks: &f.ranks}) })
	}
	ended := f.wait(ctx, &all)
	sig := watch.End()
	if !ended { // errs may still be written
		return &EndError{Err: tooSlow(ctx), Signal: sig, Forced: true, Begun: true}
	}
	return verdictOf(errs, tooSlow(ctx), sig)
}

// verdictOf is the error of a job of goroutines, and the signal that came.
func verdictOf(errs []error, slow error, sig os.Signal) error {
	for _, err := range append([]error{slow}, errs...) {
		// The rank that failed has the plain error; the others name it.
		var told *collective.ReportedError
		if err == nil || errors.As(err, &told) || errors.Is(err, trainer.ErrStopped) {
			continue
		}
		return &EndError{Err: err, Signal: sig, Begun: true}
	}
	if sig != nil {
		return &EndError{Signal: sig, Begun: true}
	}
	return errors.Join(errs...)
}

// A forcible is goroutines that are asked to stop by signals: the first asks,
// the second, or a lack of progress, ends their context. They have forceTime
// then.
type forcible struct {
	stop   chan struct{} // closed when they are asked to stop
	forced chan struct{} // closed when they were waited for long enough
	ranks  ranksVigil
	cancel context.CancelCauseFunc
	once   sync.Once
}

// newForcible makes one, and the context of its goroutines.
func newForcible(ctx context.Context) (context.Context, *forcible) {
	f := &forcible{stop: make(chan struct{}), forced: make(chan struct{}), ranks: ranksVigil{seen: vigil{}, ranks: map[string]func() bool{}}}
	ctx, f.cancel = context.WithCancelCause(ctx)
	return ctx, f
}

func (f *forcible) ask() { close(f.stop) }

func (f *forcible) force(cause error) {
	f.cancel(cause)
	f.once.Do(func() { time.AfterFunc(forceTime, func() { close(f.forced) }) })
}

// wait waits for the goroutines, and reports whether they have ended. If they
// have not, they are left to the end of the process.
func (f *forcible) wait(ctx context.Context, all *sync.WaitGroup) bool {
	beating, still := context.WithCancel(context.WithoutCancel(ctx))
	var beats sync.WaitGroup
	defer beats.Wait()
	defer still()
	beats.Go(func() {
		everyBeat(beating, f.stop, func() {
			if err := f.ranks.look(); err != nil {
				f.force(err)
			}
		})
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		all.Wait()
	}()
	select {
	case <-ended:
		return true
	case <-f.forced:
		return false
	}
}

// tooSlow is the error of goroutines that were ended because one made no
// progress, nil if they were not.
func tooSlow(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, ErrTooSlow) {
		return err
	}
	return nil
}
