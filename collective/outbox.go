package collective

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// An outbox takes messages that are to be sent, so that a rank can receive at
// the same time.
type outbox interface {
	// take is an empty slot, for put to send. It may wait for one; a broken
	// transport fails its sends, so the wait ends.
	take() *outgoing
	// put hands a filled slot over.
	put(*outgoing)
	// flush waits until nothing is on its way and returns the first failure. It
	// follows at least one put.
	flush() error
	// tell says where to note waits for a peer to take a message.
	tell(w *Waits)
	// close ends the outbox. The transport must be closed first, and the outbox
	// flushed by whoever used it last.
	close()
}

var (
	_ outbox = (*posting)(nil)
	_ outbox = (*mailer)(nil)
)

// newOutbox is the outbox of a Transport, by its Poster unless that is nil.
func newOutbox(t Transport, p Poster) outbox {
	if p != nil {
		return &posting{t: p}
	}
	return newMailer(t)
}

// posting leaves it to the transport when messages leave.
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

func (o *posting) tell(*Waits) {} // the transport can tell better

func (o *posting) close() {}

// mailer sends in a goroutine of its own, in order. While one message is on its
// way the next ones are made ready, and who asks for more than there are slots
// waits.
type mailer struct {
	t     Transport
	free  chan *outgoing
	ready chan *outgoing
	waits *Waits       // used by who takes and flushes
	to    atomic.Int32 // the rank that is sent to, or was last
	done  sync.WaitGroup

	mu  sync.Mutex
	err error // the first failure since the last flush
}

// An outgoing is one message to be sent. Its parts point into memory of the
// call that is in progress.
type outgoing struct {
	to    int
	h     Header
	parts [][]byte
}

// outboxSlots is enough for all that a rank sends before it must receive: if every
// rank of a ring could wait for a slot, all would, for ever.
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
