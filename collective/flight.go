package collective

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringtrain/ringtrain/collective/publish"
)

// FlightCalls is how many calls a flight record holds.
const FlightCalls = 64

// A Flight is what a group's flight record holds: the last calls, and what the
// group waits for just now. Every Group keeps one, always; a Sub has its own.
//
// The clock is not read where that would show in what a call costs. Over shared
// memory, and where ranks of one process meet, a wait counts from when it turns
// out to take longer than a few looks, so its first microseconds are not counted,
// and a small call that has found everything there at once has no Took. Over
// other transports every wait for a message counts; waits of the goroutine that
// sends beside it do not, but for what the call waits for it at the end.
type Flight struct {
	View  View
	Taken time.Time
	Calls []FlightCall // oldest first; the last may be in progress
	// Waiting is for whom the call in progress waits; nil if it does not wait, or
	// if there is none.
	Waiting *Waiting
}

// A FlightCall is one call in a flight record.
type FlightCall struct {
	Call      Call
	Seq, Step uint64 // as in its Header
	Began     time.Time
	Took      time.Duration // of a call in progress, so far; 0: a few microseconds
	Done      bool          // it is over
	Err       error         // its error, nil also while it is in progress
	Waits     []Wait        // the peers it waited for, by rank; waits in progress are not counted yet
}

// A Wait is for how long a call waited for a peer: for its first sign, and for
// what came later.
type Wait struct {
	Rank       int
	Late, Slow time.Duration // see LateToCall and SlowToMove
}

// Waiting is a wait in progress.
type Waiting struct {
	Rank  int
	Cause Cause
	For   time.Duration
}

// InProgress is the call in progress, or nil.
func (f *Flight) InProgress() *FlightCall {
	if n := len(f.Calls); n > 0 && !f.Calls[n-1].Done {
		return &f.Calls[n-1]
	}
	return nil
}

// A FlightObserver is an Observer that is told of each call as it stands in the
// flight record, after Called.
type FlightObserver interface {
	Observer
	// Recorded is told of a call that is over. c and its Waits are valid until it
	// returns.
	Recorded(c *FlightCall)
}

// Flight copies the flight record. It may be called at any time, by anybody, and
// does not wait for a call in progress.
func (g *Group) Flight() Flight {
	f := Flight{View: g.view}
	f.View.Members = append([]Member(nil), g.view.Members...)
	f.Calls, f.Waiting, f.Taken = g.flight.copy()
	return f
}

// flight is a group's flight record: a ring of calls, made once. Who makes
// calls writes it, without a lock: a call of a few bytes takes less than a
// microsecond. Who reads it stops the writer one call later, so there is one leg
// more than calls are read.
type flight struct {
	Waits
	current *leg // of the call in progress or the last, for who makes it
	legs    []leg
	next    int          // of legs, for who makes calls
	phase   publish.Word // 2n+1 while call n is in progress, 2n+2 when it is over
	told    FlightCall

	mu      sync.Mutex  // held by who reads
	reading atomic.Bool // mu is held
}

// A leg is one call of a flight record. What is not atomic is written before
// the phase says that it can be read.
type leg struct {
	call      Call
	seq, step uint64
	began     time.Duration // after origin
	took      time.Duration
	err       error
	spans     []span // by rank
	noted     bool   // some are not 0; for who makes calls
}

// quickBytes is how much a call moves at least that reads the clock at its end
// although it has not waited.
const quickBytes = 16 << 10

func newFlight(size int) *flight {
	f := &flight{legs: make([]leg, FlightCalls+1)}
	spans := make([]span, len(f.legs)*size)
	for i := range f.legs {
		f.legs[i].spans = spans[i*size : (i+1)*size : (i+1)*size]
	}
	return f
}

// leg is where the n-th call is noted, from 0.
func (f *flight) leg(n uint64) *leg { return &f.legs[n%uint64(len(f.legs))] }

// begin notes a call. It is in progress until end.
func (f *flight) begin(o *Operation, began time.Duration) {
	if f.reading.Load() {
		f.mu.Lock()
		//lint:ignore SA2001 who has the lock copies, and is done once it can be had
		f.mu.Unlock()
	}
	l := &f.legs[f.next]
	if f.next++; f.next == len(f.legs) {
		f.next = 0
	}
	l.call.set(&o.Call)
	l.call.Method = 0 // which is the engine's
	l.seq, l.step, l.began, l.err = o.Seq, o.Step, began, nil
	if l.noted {
		for i := range l.spans {
			l.spans[i].clear()
		}
	}
	f.current, f.spans, f.noted = l, l.spans, false
	f.phase.Publish(f.phase.Load() + 1)
}

// clear looks before it writes: a look is the cheaper, and most are clear.
func (s *span) clear() {
	if s.late.Load() != 0 {
		s.late.Store(0)
	}
	if s.slow.Load() != 0 {
		s.slow.Store(0)
	}
}

// end notes that the call is over. exactly reads the clock in any case.
func (f *flight) end(err error, exactly bool) {
	l := f.current
	if err != nil {
		f.nothing()
		f.since.Store(0)
	}
	l.took, l.err, l.noted = 0, err, f.noted
	if exactly || f.noted || err != nil || l.call.Count*uint64(l.call.DType.Size()) >= quickBytes {
		l.took = time.Since(origin) - l.began
	}
	f.spans = nil
	f.phase.Publish(f.phase.Load() + 1)
}

// tell tells an observer of the call that is over.
func (f *flight) tell(o FlightObserver) {
	f.told = f.current.copy(true, 0, f.told.Waits[:0])
	o.Recorded(&f.told)
}

// copy is the calls, oldest first, the wait in progress, and when that was.
func (f *flight) copy() (calls []FlightCall, w *Waiting, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reading.Store(true)
	defer f.reading.Store(false)
	phase, now := f.phase.Load(), time.Since(origin)
	begun, running := (phase+1)/2, phase%2 == 1
	for n := begun - min(begun, FlightCalls); n < begun; n++ {
		calls = append(calls, f.leg(n).copy(n+1 < begun || !running, now, nil))
	}
	if !running {
		return calls, nil, origin.Add(now)
	}
	if rank, cause := f.expecting(); rank >= 0 {
		w = &Waiting{Rank: rank, Cause: cause}
		if since := f.since.Load(); since != 0 {
			w.For = max(now-time.Duration(since), 0)
		}
	}
	return calls, w, origin.Add(now)
}

// copy is the leg as others see it. The waits are appended to those given.
func (l *leg) copy(done bool, now time.Duration, waits []Wait) FlightCall {
	c := FlightCall{Call: l.call, Seq: l.seq, Step: l.step, Began: origin.Add(l.began), Done: done, Took: now - l.began, Waits: waits}
	if done {
		c.Took, c.Err = l.took, l.err
	}
	for r := range l.spans {
		if late, slow := l.spans[r].late.Load(), l.spans[r].slow.Load(); late|slow != 0 {
			c.Waits = append(c.Waits, Wait{r, time.Duration(late), time.Duration(slow)})
		}
	}
	return c
}
