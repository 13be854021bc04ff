package collective

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringtrain/ringtrain/collective/publish"
	"github.com/ringtrain/ringtrain/collective/ticks"
)

// FlightCalls is the number of calls that a flight record holds.
const FlightCalls = 64

// A Flight is a copy of a group's flight record: the last calls, and the
// current wait. Every Group always keeps a record. A Sub has its own.
//
// The clock is not read where reading it would slow down a call noticeably.
//
// Over shared memory, and between ranks of one process, a wait counts only once
// it has lasted longer than a few polls. Its first microseconds are missing,
// and a small call that never waited has no Took.
//
// Over other transports, every wait for a message counts. Waits of the
// goroutine that sends do not count, except while the call itself waits for it.
//
// While the group exchanges Messages, each Next is recorded as a call of its own, without
// Waits, because it waits for any rank.
type Flight struct {
	View  View
	Taken time.Time
	Calls []FlightCall // oldest first; the last may be in progress
	// Waiting is the wait of the call in progress. It is nil if that call does
	// not wait or there is no call in progress.
	Waiting *Waiting
}

// A FlightCall is one call in a flight record.
type FlightCall struct {
	Call      Call
	Seq, Step uint64 // as in its Header
	Began     time.Time
	Took      time.Duration // so far, if in progress; 0 means a few microseconds
	Done      bool          // it is over
	Err       error         // its error; nil while it is in progress
	Waits     []Wait        // the peers it waited for, by rank; without the wait in progress
}

// A Wait is how long a call waited for one peer: for its first message, and for
// later ones.
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

// InProgress returns the call in progress, or nil.
func (f *Flight) InProgress() *FlightCall {
	if n := len(f.Calls); n > 0 && !f.Calls[n-1].Done {
		return &f.Calls[n-1]
	}
	return nil
}

// A FlightObserver is an Observer that also gets each finished call as the
// flight record has it, after Called.
type FlightObserver interface {
	Observer
	// Recorded gets a finished call. c and its Waits are valid until it
	// returns.
	Recorded(c *FlightCall)
}

// Flight copies the flight record. Any goroutine may call it at any time. It
// does not wait for a call in progress.
func (g *Group) Flight() Flight {
	f := Flight{View: g.view}
	f.View.Members = append([]Member(nil), g.view.Members...)
	f.Calls, f.Waiting, f.Taken = g.flight.copy()
	return f
}

// flight is a group's flight record: a ring of calls, allocated once. The
// goroutine that makes calls writes it without a lock, because a call of a few
// bytes takes less than a microsecond. A reader may stop the writer one call
// late, so the ring has one entry more than a reader copies.
type flight struct {
	Waits
	current  *flightEntry // of the call in progress or the last one; used by the writer
	entries  []flightEntry
	next     int          // index into entries; used by the writer
	phase    publish.Word // 2n+1 while call n is in progress, 2n+2 when it is over
	clock    *ticks.Clock
	reported FlightCall

	mu      sync.Mutex  // held by a reader
	reading atomic.Bool // mu is held
}

// A flightEntry is one call of a flight record. The writer stores what is not atomic
// before phase says that readers may load it.
type flightEntry struct {
	call      Call
	seq, step uint64
	began     ticks.Ticks
	ended     ticks.Ticks // 0 if not noted
	err       error
	spans     []span // by rank
	noted     bool   // some spans are not 0; used by the writer
}

// quickBytes is the size in bytes from which calls are always timed. A smaller
// call that did not wait saves the clock reading.
const quickBytes = 16 << 10

func newFlight(size int) *flight {
	f := &flight{entries: make([]flightEntry, FlightCalls+1), clock: ticks.New(origin)}
	spans := make([]span, len(f.entries)*size)
	for i := range f.entries {
		f.entries[i].spans = spans[i*size : (i+1)*size : (i+1)*size]
	}
	return f
}

// entry returns the entry of the n-th call, counted from 0.
func (f *flight) entry(n uint64) *flightEntry { return &f.entries[n%uint64(len(f.entries))] }

// begin records that a call is in progress, until end.
func (f *flight) begin(o *Operation, began ticks.Ticks) {
	f.enter(&o.Header, began)
	f.spans, f.noted = f.current.spans, false
	f.phase.Publish(f.phase.Load() + 1)
}

// beginNext records a wait in Messages.Next, until endNext. It notes no waits for single
// ranks: all are awaited, and another goroutine may be sending.
func (f *flight) beginNext(h *Header) {
	f.enter(h, f.clock.Now())
	f.phase.Publish(f.phase.Load() + 1)
}

// endNext records that the wait is over.
func (f *flight) endNext(err error) {
	l := f.current
	l.ended, l.err, l.noted = f.clock.Now(), err, false
	f.phase.Publish(f.phase.Load() + 1)
}

// enter fills in the next entry, which becomes the current one.
func (f *flight) enter(h *Header, began ticks.Ticks) {
	if f.reading.Load() {
		f.mu.Lock()
		//lint:ignore SA2001 holding the lock means copying, so getting it means that the copy is done
		f.mu.Unlock()
	}
	l := &f.entries[f.next]
	if f.next++; f.next == len(f.entries) {
		f.next = 0
	}
	l.call.set(&h.Call)
	l.call.Method = 0 // the engine's choice, not part of the caller's call
	l.seq, l.step, l.began, l.err = h.Seq, h.Step, began, nil
	if l.noted {
		for i := range l.spans {
			l.spans[i].clear()
		}
	}
	f.current = l
}

// clear loads before it stores: loading is cheaper, and most spans are already
// 0.
func (s *span) clear() {
	if s.late.Load() != 0 {
		s.late.Store(0)
	}
	if s.slow.Load() != 0 {
		s.slow.Store(0)
	}
}

// end records that the call is over. With exactly, it always reads the clock.
func (f *flight) end(err error, exactly bool) {
	l := f.current
	if err != nil {
		f.nothing()
		f.since.Store(0)
	}
	l.ended, l.err, l.noted = 0, err, f.noted
	if exactly || f.noted || err != nil || l.call.Count*uint64(l.call.DType.Size()) >= quickBytes {
		l.ended = f.clock.Now()
	}
	f.spans = nil
	f.phase.Publish(f.phase.Load() + 1)
}

// report passes the finished call, which returned err, to an observer.
func (f *flight) report(o Observer, recorder FlightObserver, err error) {
	l, now := f.current, f.clock.Read()
	o.Called(l.call, l.seq, l.step, now.At(l.ended)-now.At(l.began), err)
	if recorder != nil {
		f.reported = l.copy(true, &now, f.reported.Waits[:0])
		recorder.Recorded(&f.reported)
	}
}

// passed returns how long ago a moment was.
func (f *flight) passed(t ticks.Ticks) time.Duration {
	now := f.clock.Read()
	return now.Now() - now.At(t)
}

// copy returns the calls, oldest first, the wait in progress, and the time of
// the copy.
func (f *flight) copy() (calls []FlightCall, w *Waiting, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reading.Store(true)
	defer f.reading.Store(false)
	phase, now := f.phase.Load(), f.clock.Read()
	at = origin.Add(now.Now())
	begun, running := (phase+1)/2, phase%2 == 1
	for n := begun - min(begun, FlightCalls); n < begun; n++ {
		calls = append(calls, f.entry(n).copy(n+1 < begun || !running, &now, nil))
	}
	if !running {
		return calls, nil, at
	}
	if rank, cause := f.expecting(); rank >= 0 {
		w = &Waiting{Rank: rank, Cause: cause}
		if since := f.since.Load(); since != 0 {
			w.For = max(now.Now()-time.Duration(since), 0)
		}
	}
	return calls, w, at
}

// copy returns the exported form of the entry. It appends the waits to those
// given.
func (l *flightEntry) copy(done bool, now *ticks.Reading, waits []Wait) FlightCall {
	began, ended := now.At(l.began), now.Now()
	c := FlightCall{Call: l.call, Seq: l.seq, Step: l.step, Began: origin.Add(began), Done: done, Waits: waits}
	if done {
		c.Err, ended = l.err, began
		if l.ended != 0 {
			ended = now.At(l.ended)
		}
	}
	c.Took = ended - began
	for r := range l.spans {
		if late, slow := l.spans[r].late.Load(), l.spans[r].slow.Load(); late|slow != 0 {
			c.Waits = append(c.Waits, Wait{r, time.Duration(late), time.Duration(slow)})
		}
	}
	return c
}
