package membership

import (
	"sync"
	"time"
)

// An inbox carries reports from memberlist's goroutines to the Agent's. Reports of
// members are never dropped. Messages are dropped if too many wait, because the
// protocol sends them again.
type inbox struct {
	mu       sync.Mutex
	queue    []func(now time.Time)
	messages int
	wake     chan struct{} // holds a token while the queue may not be empty
}

// maxQueued is the number of messages that may wait.
const maxQueued = 4096

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

// put queues work for the Agent's goroutine. It never blocks.
func (b *inbox) put(do func(now time.Time)) {
	b.mu.Lock()
	b.queue = append(b.queue, do)
	b.mu.Unlock()
	b.ring()
}

// message queues work that may be dropped.
func (b *inbox) message(do func(now time.Time)) {
	b.mu.Lock()
	full := b.messages >= maxQueued
	if !full {
		b.messages++
		b.queue = append(b.queue, do)
	}
	b.mu.Unlock()
	b.ring()
}

func (b *inbox) ring() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// drain empties and returns the queue.
func (b *inbox) drain() []func(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queue
	b.queue, b.messages = nil, 0
	return q
}
