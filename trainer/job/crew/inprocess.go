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

// A rankWatchdog is a watchdog for the goroutines of InProcess.
type rankWatchdog struct {
	mu    sync.Mutex
	seen  watchdog
	ranks map[string]func() bool // whether the rank makes progress
}

// add watches a rank until remove is called.
func (v *rankWatchdog) add(rank int, p *Pulse, g *collective.Group) (remove func()) {
	name := fmt.Sprintf("rank %d", rank)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ranks[name] = func() bool { return makesProgress(p, g) }
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.ranks, name)
		delete(v.seen, name)
	}
}

// check asks all ranks, and returns an error that names a stuck one.
func (v *rankWatchdog) check() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	for name, progress := range v.ranks {
		if _, known := v.seen[name]; !known || progress() {
			v.seen[name] = now
		}
	}
	return v.seen.stuck(now)
}

// A Seat is the place of one rank among the goroutines of InProcess.
type Seat struct {
	Rank int
	Stop <-chan struct{} // closed when the job is asked to stop

	ranks *rankWatchdog
}

// Watch ends the job by force if, after it was asked to stop, neither p nor the calls of
// g show progress. It watches until remove is called.
func (s *Seat) Watch(p *Pulse, g *collective.Group) (remove func()) { return s.ranks.add(s.Rank, p, g) }

// InProcess runs ranks as goroutines of this process and waits for them. It returns the
// error of the rank that failed, not of those that noticed. The first signal closes
// Seat.Stop; the second one, or a lack of progress, cancels their context. The error is
// an *EndError if a rank failed or a signal came.
func InProcess(ctx context.Context, ranks int, signals <-chan os.Signal, run func(context.Context, *Seat) error) error {
	ctx, f := newRankJob(ctx)
	defer f.cancel(nil)
	watch := WatchSignals(signals, f.ask, func() { f.force(ErrTwice) })
	errs := make([]error, ranks)
	var all sync.WaitGroup
	for i := range ranks {
		all.Go(func() { errs[i] = run(ctx, &Seat{Rank: i, Stop: f.stop, ranks: &f.ranks}) })
	}
	ended := f.wait(ctx, &all)
	sig := watch.End()
	if !ended { // goroutines may still write errs
		return &EndError{Err: stallCause(ctx), Signal: sig, Forced: true, Begun: true}
	}
	return verdictOf(errs, stallCause(ctx), sig)
}

// verdictOf returns the error of InProcess, from those of its ranks.
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

// A rankJob ends the goroutines of InProcess. The first signal asks them to stop. The
// second, or a lack of progress, ends their context, and then they have forceTime.
type rankJob struct {
	stop   chan struct{} // closed by the first signal
	forced chan struct{} // closed when forceTime is over
	ranks  rankWatchdog
	cancel context.CancelCauseFunc
	once   sync.Once
}

// newRankJob returns a rankJob, and the context of its goroutines.
func newRankJob(ctx context.Context) (context.Context, *rankJob) {
	f := &rankJob{stop: make(chan struct{}), forced: make(chan struct{}), ranks: rankWatchdog{seen: watchdog{}, ranks: map[string]func() bool{}}}
	ctx, f.cancel = context.WithCancelCause(ctx)
	return ctx, f
}

func (f *rankJob) ask() { close(f.stop) }

func (f *rankJob) force(cause error) {
	f.cancel(cause)
	f.once.Do(func() { time.AfterFunc(forceTime, func() { close(f.forced) }) })
}

// wait waits for the goroutines, and reports whether they have ended. Those that have
// not run until the process ends.
func (f *rankJob) wait(ctx context.Context, all *sync.WaitGroup) bool {
	beating, still := context.WithCancel(context.WithoutCancel(ctx))
	var beats sync.WaitGroup
	defer beats.Wait()
	defer still()
	beats.Go(func() {
		pollProgress(beating, f.stop, func() {
			if err := f.ranks.check(); err != nil {
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

// stallCause returns the error that ended ctx if that was a lack of progress, or nil.
func stallCause(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, ErrTooSlow) {
		return err
	}
	return nil
}
