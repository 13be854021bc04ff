package collective

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// A sender sends messages in the background, so that the rank can receive at
// the same time.
type sender interface {
	// slot returns an empty slot to fill and pass to send. It may wait for one.
	// If the transport breaks, its sends fail and free their slots, so the wait
	// ends.
	slot() *outgoing
	// send sends a filled slot.
	send(*outgoing)
	// flush waits until everything passed to send has left, and returns the first
	// failure. Call it only after at least one send.
	flush() error
	// noteWaits sets where to note waits for a peer to accept a message.
	noteWaits(w *Waits)
	// close ends the sender. Close the transport first, and flush the sender if
	// it was used.
	close()
}

var (
	_ sender = (*postSender)(nil)
	_ sender = (*queueSender)(nil)
)

// newSender returns a sender over the Poster of t, or over t if it has none.
func newSender(t Transport, can Abilities) sender {
	if can.Post != nil {
		return &postSender{t: can.Post, noted: can.NoteWaits != nil}
	}
	return newQueueSender(t)
}

// A postSender sends by a Poster, in the goroutine of the call.
type postSender struct {
	t       Poster
	noted   bool   // the transport notes its waits
	waits   *Waits // nil if noted
	message outgoing
	err     error // the first failure since the last flush
}

func (s *postSender) slot() *outgoing { return &s.message }

func (s *postSender) send(m *outgoing) {
	if s.err == nil {
		s.expect()
		s.err = s.t.Post(m.to, &m.h, m.parts)
	}
	m.empty()
}

func (s *postSender) flush() error {
	err := s.err
	if err == nil {
		s.expect()
		err = s.t.Flush(context.Background())
	}
	if s.waits != nil {
		s.waits.nothing()
	}
	s.err = nil
	return err
}

// expect records that the receiver of the last message may keep the transport waiting.
func (s *postSender) expect() {
	if s.waits != nil {
		s.waits.expect(s.message.to, SlowToMove)
	}
}

func (s *postSender) noteWaits(w *Waits) {
	if !s.noted {
		s.waits = w
	}
}

func (s *postSender) close() {}

// A queueSender sends in a goroutine of its own, in order. While it sends one
// message, the caller fills the next slots. A caller that needs another slot waits.
type queueSender struct {
	t     Transport
	free  chan *outgoing
	ready chan *outgoing
	waits *Waits       // used by the goroutine of the call
	to    atomic.Int32 // the rank of the current or last message
	done  sync.WaitGroup

	mu  sync.Mutex
	err error // the first failure since the last flush
}

// An outgoing is one message to send. Its parts point into memory of the call
// in progress.
type outgoing struct {
	to    int
	h     Header
	parts [][]byte
}

// empty forgets the memory that has been sent, so that it can be collected.
func (m *outgoing) empty() {
	clear(m.parts)
	m.parts = m.parts[:0]
}

// sendSlots is enough for everything that a rank sends before it must
// receive. With fewer, every rank of a ring could wait for a slot, forever.
const sendSlots = max(schedule.RingAhead+2, schedule.Outstanding)

func newQueueSender(t Transport) *queueSender {
	s := &queueSender{t: t, free: make(chan *outgoing, sendSlots), ready: make(chan *outgoing, sendSlots)}
	for range sendSlots {
		s.free <- new(outgoing)
	}
	s.done.Go(s.run)
	return s
}

func (s *queueSender) run() {
	for m := range s.ready {
		if s.failure() == nil {
			s.to.Store(int32(m.to))
			if err := s.t.Send(context.Background(), m.to, &m.h, m.parts); err != nil {
				s.mu.Lock()
				s.err = err
				s.mu.Unlock()
			}
		}
		m.empty()
		s.free <- m
	}
}

func (s *queueSender) slot() *outgoing {
	select {
	case m := <-s.free:
		return m
	default:
	}
	to := int(s.to.Load())
	began := s.waits.Begin(to, SlowToMove)
	m := <-s.free
	s.waits.End(to, SlowToMove, began)
	return m
}

func (s *queueSender) send(m *outgoing) { s.ready <- m }

func (s *queueSender) flush() error {
	var slots [sendSlots]*outgoing
	for i := range slots {
		slots[i] = s.slot()
	}
	for _, m := range slots {
		s.free <- m
	}
	err := s.failure()
	s.mu.Lock()
	s.err = nil
	s.mu.Unlock()
	return err
}

func (s *queueSender) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *queueSender) noteWaits(w *Waits) { s.waits = w }

func (s *queueSender) close() {
	close(s.ready)
	s.done.Wait()
}
