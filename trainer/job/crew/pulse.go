package crew

import (
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/trainer"
)

// How long workers that were asked to stop may take.
const (
	// stopTime is how long a worker may show no progress.
	stopTime = 20 * time.Second
	// beatEvery is between two reports of progress.
	beatEvery = 2 * time.Second
	// stepsAllowed is how many times the longest step or evaluation so far the one
	// in progress may take.
	stepsAllowed = 3
	// unknownTime is how long a step may take while nothing is known about steps, or
	// while a GPU waits for others unseen. It is as much as the trainer allows.
	unknownTime = 10 * time.Minute
)

// A Pulse knows whether a rank makes progress: it finishes steps and
// evaluations, it writes, or it waits for another attempt to write. The rank tells
// it, and others ask. Its methods are safe for concurrent use, and do nothing on
// nil.
type Pulse struct {
	mu       sync.Mutex
	training bool
	saving   bool
	unseen   bool          // this rank waits for others where no call shows it
	last     time.Time     // of the last progress
	longest  time.Duration // of steps and evaluations
	until    time.Time     // retries end
}

var _ trainer.Observer = (*Pulse)(nil)

// NewPulse returns the Pulse of a rank that has not begun.
func NewPulse() *Pulse { return &Pulse{last: time.Now()} }

// Begin reports that the first step begins. unseen means that no call shows when this
// rank waits for others, as on a GPU.
func (p *Pulse) Begin(unseen bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.training, p.unseen, p.last = true, unseen, time.Now()
}

// With returns an observer that tells p and other, each of which may be nil.
func (p *Pulse) With(other trainer.Observer) trainer.Observer {
	switch {
	case p == nil:
		return other
	case other == nil:
		return p
	}
	return watched{p, other}
}

// watched is a Pulse and another observer.
type watched struct {
	pulse *Pulse
	other trainer.Observer
}

// Stepped is part of trainer.Observer.
func (w watched) Stepped(e trainer.StepEvent) { w.pulse.Stepped(e); w.other.Stepped(e) }

// Evaluated is part of trainer.Observer.
func (w watched) Evaluated(e trainer.EvalEvent) { w.pulse.Evaluated(e); w.other.Evaluated(e) }

// Stepped implements trainer.Observer.
func (p *Pulse) Stepped(trainer.StepEvent) { p.finished() }

// Evaluated implements trainer.Observer.
func (p *Pulse) Evaluated(trainer.EvalEvent) { p.finished() }

func (p *Pulse) finished() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.longest, p.last = max(p.longest, now.Sub(p.last)), now
}

// Save reports that a file is being written, until done is called.
func (p *Pulse) Save() (done func()) {
	if p == nil {
		return func() {}
	}
	set := func(saving bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.saving, p.last = saving, time.Now()
	}
	set(true)
	return func() { set(false) }
}

// Wrote reports that bytes were written.
func (p *Pulse) Wrote(int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
}

// Retrying reports that writing a file is retried until then; the zero time ends that.
func (p *Pulse) Retrying(until time.Time) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = until
}

// beats reports whether there is progress, or may be. The rank has stopTime more
// when there is none.
func (p *Pulse) beats(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	allowed := time.Duration(0)
	switch {
	case now.Before(p.until):
		return true
	case p.saving || !p.training:
	case p.unseen || p.longest == 0:
		allowed = unknownTime
	default:
		allowed = stepsAllowed * p.longest
	}
	return now.Sub(p.last) < max(2*beatEvery, allowed-stopTime)
}
