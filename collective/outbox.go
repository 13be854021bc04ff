package collective

import (
	"context"
	"sync"
)

// An outbox sends in the background, in order, so that a rank can receive at
// the same time. It has two slots: while one message is on its way the next
// is made ready, and who asks for a third waits.
type outbox struct {
	t     Transport
	free  chan *outgoing
	ready chan *outgoing
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

const outboxSlots = 2

func newOutbox(t Transport) *outbox {
	o := &outbox{t: t, free: make(chan *outgoing, outboxSlots), ready: make(chan *outgoing, outboxSlots)}
	for range outboxSlots {
		o.free <- new(outgoing)
	}
	o.done.Go(o.run)
	return o
}

func (o *outbox) run() {
	for m := range o.ready {
		if o.failure() == nil {
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

// take is an empty slot, for put to send. It waits for one; a broken transport
// fails its sends, so the wait ends.
func (o *outbox) take() *outgoing { return <-o.free }

// put hands a filled slot over.
func (o *outbox) put(m *outgoing) { o.ready <- m }

// flush waits until nothing is on its way and returns the first failure.
func (o *outbox) flush() error {
	var slots [outboxSlots]*outgoing
	for i := range slots {
		slots[i] = <-o.free
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

func (o *outbox) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// close ends the goroutine. The transport must be closed first, and the outbox
// flushed by whoever used it last.
func (o *outbox) close() {
	close(o.ready)
	o.done.Wait()
}
