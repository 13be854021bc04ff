package crew

import (
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/trainer"
)

// How long workers that were asked to stop may take.
const (
	// stallTime is how long a worker may report no progress.
	stallTime = 20 * time.Second
	// reportEvery is the time between two reports of progress.
	reportEvery = 2 * time.Second
	// stepFactor times the longest step or evaluation so far is how long the current one
	// may take.
	stepFactor = 3
	// unknownStepTime is how long a step may take if no step has been measured, or if
	// waiting on a GPU shows in no call. It equals the trainer's own limit.
	unknownStepTime = 10 * time.Minute
)

// A Pulse records whether a rank makes progress: it finishes steps and evaluations, it
// writes a file, or it waits to retry a write. Its methods are safe for concurrent use.
// All but those of trainer.Observer may be called on nil, and then do nothing.
type Pulse struct {
	mu       sync.Mutex
	training bool
	saving   bool
	unseen   bool          // no call shows when this rank waits for others, until trained
	trained  bool          // there is no further step
	last     time.Time     // of the last progress
	longest  time.Duration // of steps and evaluations
	until    time.Time     // when retries end
}

var _ trainer.Observer = (*Pulse)(nil)

// NewPulse returns the Pulse of a rank that has not begun.
func NewPulse() *Pulse { return &Pulse{last: time.Now()} }

// Begin reports that the first step begins. unseen means that no call shows when this
// rank waits for others, as on a GPU, or if a goroutine always waits for messages.
func (p *Pulse) Begin(unseen bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.training, p.unseen, p.last = true, unseen, time.Now()
}

// Trained reports that there is no further step. From then on a rank that waits for a message
// waits for others.
func (p *Pulse) Trained() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trained = true
}

// blind reports whether this rank may be waiting for a message although it hangs.
func (p *Pulse) blind() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unseen && !p.trained
}

// With returns an observer that calls p and other, each of which may be nil.
func (p *Pulse) With(other trainer.Observer) trainer.Observer {
	switch {
	case p == nil:
		return other
	case other == nil:
		return p
	}
	return watched{p, other}
}

// watched calls a Pulse and another observer.
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

// active reports whether the rank makes progress, or may be in a long step. The
// watchdog allows stallTime more after it has become false, so long steps get
// stallTime less here.
func (p *Pulse) active(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	allowed := time.Duration(0)
	switch {
	case now.Before(p.until):
		return true
	case p.saving || !p.training:
	case p.unseen || p.longest == 0:
		allowed = unknownStepTime
	default:
		allowed = stepFactor * p.longest
	}
	return now.Sub(p.last) < max(2*reportEvery, allowed-stallTime)
}
