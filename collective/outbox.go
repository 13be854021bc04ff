package collective

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// An outbox sends messages in the background, so that the rank can receive at
// the same time.
type outbox interface {
	// take returns an empty slot to fill and give to put. It may wait for one.
	// If the transport breaks, its sends fail and free their slots, so the wait
	// ends.
	take() *outgoing
	// put sends a filled slot.
	put(*outgoing)
	// flush waits until everything put has been sent, and returns the first
	// failure. Call it only after at least one put.
	flush() error
	// tell sets where to note waits for a peer to take a message.
	tell(w *Waits)
	// close ends the outbox. Close the transport first, and flush the outbox if
	// it was used.
	close()
}

var (
	_ outbox = (*posting)(nil)
	_ outbox = (*mailer)(nil)
)

// newOutbox returns an outbox over the Poster p, or over t if p is nil.
func newOutbox(t Transport, p Poster) outbox {
	if p != nil {
		return &posting{t: p}
	}
	return newMailer(t)
}

// posting sends by a Poster, in the goroutine of the call.
type posting struct {
	t    Poster
	slot outgoing
	err  error // the first failure since the last flush
}

func (o *posting) take() *outgoing { return &o.slot }

func (o *posting) put(m *outgoing) {
	if o.err == nil {
		o.err = o.t.Post(m.to, &m.h, m.parts)
	}
	m.parts = m.parts[:0]
}

func (o *posting) flush() error {
	err := o.err
	if err == nil {
		err = o.t.Flush(context.Background())
	}
	o.err = nil
	return err
}

func (o *posting) tell(*Waits) {} // the transport notes these waits itself

func (o *posting) close() {}

// mailer sends in a goroutine of its own, in order. While it sends one message,
// the caller fills the next slots. A caller that needs another slot waits.
type mailer struct {
	t     Transport
	free  chan *outgoing
	ready chan *outgoing
	waits *Waits       // used by the goroutine that takes and flushes
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

// outboxSlots is enough for everything that a rank sends before it must
// receive. With fewer, every rank of a ring could wait for a slot, forever.
const outboxSlots = max(schedule.RingAhead+2, schedule.Outstanding)

func newMailer(t Transport) *mailer {
	o := &mailer{t: t, free: make(chan *outgoing, outboxSlots), ready: make(chan *outgoing, outboxSlots)}
	for range outboxSlots {
		o.free <- new(outgoing)
	}
	o.done.Go(o.run)
	return o
}

func (o *mailer) run() {
	for m := range o.ready {
		if o.failure() == nil {
			o.to.Store(int32(m.to))
			if err := o.t.Send(context.Background(), m.to, &m.h, m.parts); err != nil {
				o.mu.Lock()
				o.err = err
				o.mu.Unlock()
			}
		}
		m.parts = m.parts[:0]
		o.free <- m
	}
}

func (o *mailer) take() *outgoing {
	select {
	case m := <-o.free:
		return m
	default:
	}
	to := int(o.to.Load())
	began := o.waits.Begin(to, SlowToMove)
	m := <-o.free
	o.waits.End(to, SlowToMove, began)
	return m
}

func (o *mailer) put(m *outgoing) { o.ready <- m }

func (o *mailer) flush() error {
	var slots [outboxSlots]*outgoing
	for i := range slots {
		slots[i] = o.take()
	}
	for _, m := range slots {
		o.free <- m
	}
	err := o.failure()
	o.mu.Lock()
	o.err = nil
	o.mu.Unlock()
	return err
}

func (o *mailer) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

func (o *mailer) tell(w *Waits) { o.waits = w }

func (o *mailer) close() {
	close(o.ready)
	o.done.Wait()
}
