package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// errTooSlow is why workers are ended that were asked to stop.
var errTooSlow = fmt.Errorf("no progress for %v after the signal: stopped by force, and what was not yet saved is lost", stopTime)

// A vigil knows when each worker that was asked to stop has last shown progress.
type vigil map[string]time.Time

// stuck is an error that names a worker which has shown none for stopTime.
func (v vigil) stuck(now time.Time) error {
	found := ""
	for name, last := range v {
		if now.Sub(last) >= stopTime && (found == "" || name < found) {
			found = name
		}
	}
	if found == "" {
		return nil
	}
	return fmt.Errorf("%s: %w", found, errTooSlow)
}

// getsOn reports whether a rank gets on, as its pulse says, or waits for
// others in a call, which has a deadline of its own and ends when they die. The
// group may be nil.
func getsOn(p *pulse, g *collective.Group) bool {
	if p.beats(time.Now()) {
		return true
	}
	if g == nil {
		return false
	}
	f := g.Flight()
	return f.InProgress() != nil
}

// everyBeat calls look once stop is closed, and from then on again and again,
// until ctx is done.
func everyBeat(ctx context.Context, stop <-chan struct{}, look func()) {
	select {
	case <-stop:
	case <-ctx.Done():
		return
	}
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		look()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// A ranksVigil is a vigil over ranks of this process.
type ranksVigil struct {
	mu    sync.Mutex
	seen  vigil
	ranks map[string]func() bool // whether it makes progress
}

// add adds a rank, until it is removed.
func (v *ranksVigil) add(rank int, p *pulse, g *collective.Group) (remove func()) {
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
	if err := context.Cause(ctx); errors.Is(err, errTooSlow) {
		return err
	}
	return nil
}
