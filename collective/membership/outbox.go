package membership

import (
	"context"
	"sync"

	"github.com/hashicorp/memberlist"
)

// An outbox sends messages without blocking its caller. Each destination in use has
// a goroutine, which ends when its lane is empty. A message that cannot be sent is
// dropped; the protocol sends it again.
type outbox struct {
	deliver func(to *memberlist.Node, payload []byte) error
	failed  func(to *memberlist.Node, err error)

	mu     sync.Mutex
	lanes  map[string][][]byte
	empty  chan struct{} // closed when there are no lanes
	closed bool
	work   sync.WaitGroup
}

// laneDepth is how many messages may wait for one destination. Beyond that the
// oldest is dropped.
const laneDepth = 16

func newOutbox(deliver func(*memberlist.Node, []byte) error, failed func(*memberlist.Node, error)) *outbox {
	o := &outbox{deliver: deliver, failed: failed, lanes: map[string][][]byte{}, empty: make(chan struct{})}
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
	lane, running := o.lanes[to.Name]
	if len(lane) >= laneDepth {
		lane = lane[1:]
	}
	if len(o.lanes) == 0 {
		o.empty = make(chan struct{})
	}
	o.lanes[to.Name] = append(lane, payload)
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

// next takes the oldest message of a lane, or removes the lane.
func (o *outbox) next(name string) ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	lane := o.lanes[name]
	if len(lane) == 0 || o.closed {
		delete(o.lanes, name)
		if len(o.lanes) == 0 {
			close(o.empty)
		}
		return nil, false
	}
	o.lanes[name] = lane[1:]
	return lane[0], true
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
