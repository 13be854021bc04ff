package membership

import (
	"context"
	"sync"

	"github.com/hashicorp/memberlist"
)

// An outbox sends messages without blocking its caller. Each destination in use has
// a goroutine, which ends when its queue is empty. A message that cannot be sent is
// dropped; the protocol sends it again.
type outbox struct {
	deliver func(to *memberlist.Node, payload []byte) error
	failed  func(to *memberlist.Node, err error)

	mu     sync.Mutex
	queues map[string][][]byte
	empty  chan struct{} // closed when there are no queues
	closed bool
	work   sync.WaitGroup
}

// queueDepth is how many messages may wait for one destination. Beyond that the
// oldest is dropped.
const queueDepth = 16

func newOutbox(deliver func(*memberlist.Node, []byte) error, failed func(*memberlist.Node, error)) *outbox {
	o := &outbox{deliver: deliver, failed: failed, queues: map[string][][]byte{}, empty: make(chan struct{})}
	close(o.empty)
	return o
}

// put queues payload, which must not change any more.
func (o *outbox) put(to memberlist.Node, payload []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	queue, running := o.queues[to.Name]
	if len(queue) >= queueDepth {
		queue = queue[1:]
	}
	if len(o.queues) == 0 {
		o.empty = make(chan struct{})
	}
	o.queues[to.Name] = append(queue, payload)
	if !running {
		o.work.Go(func() { o.drive(&to) })
	}
}

func (o *outbox) drive(to *memberlist.Node) {
	for {
		payload, ok := o.next(to.Name)
		if !ok {
			return
		}
		if err := o.deliver(to, payload); err != nil {
			o.failed(to, err)
		}
	}
}

// next removes and returns the oldest message of a queue. It deletes an empty queue.
func (o *outbox) next(name string) ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	queue := o.queues[name]
	if len(queue) == 0 || o.closed {
		delete(o.queues, name)
		if len(o.queues) == 0 {
			close(o.empty)
		}
		return nil, false
	}
	o.queues[name] = queue[1:]
	return queue[0], true
}

// flush waits until everything is sent or dropped, or ctx ends.
func (o *outbox) flush(ctx context.Context) error {
	o.mu.Lock()
	empty := o.empty
	o.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close drops queued messages and waits for those being sent.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.work.Wait()
}
