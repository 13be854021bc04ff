package trainer

import (
	"context"

	"github.com/ringtrain/ringtrain/nn"
)

// Sums adds up gradients over the ranks beside the backend's other work, as gpu's
// Backend.Aside and Backend.Join do with calls of ncclgroup's Engine.Queued. All
// ranks make the same calls in the same order, and nobody compares them.
type Sums interface {
	// Sum queues the sum of a part of the gradients, in place, after all work so far.
	// Work that is queued later does not wait for it, and leaves that part alone,
	// until Join. What it does otherwise a recording does not repeat.
	Sum(grads nn.Buffer) error
	// Join has all work that is queued later wait for the sums.
	Join() error
	// Wait waits for all work so far, sums too, or for ctx. It returns what the
	// backend has failed with, or what has broken the sums.
	Wait(ctx context.Context) error
}

// A sender lets the gradients of one backward pass leave in buckets, each as soon
// as it is complete.
type sender struct {
	grads nn.Buffer
	lens  []int // of the buckets that have not left, see Buckets
	left  int   // gradients from here on have
	leave func(bucket nn.Buffer) error
	err   error
}

func newSender(grads nn.Buffer, lens []int, leave func(bucket nn.Buffer) error) *sender {
	return &sender{grads: grads, lens: lens, left: grads.Len(), leave: leave}
}

// final lets the buckets leave that are complete when gradients from lo on are. It
// is for nn.Pass.Final.
func (s *sender) final(lo int) {
	for len(s.lens) > 0 && s.err == nil && s.left-s.lens[0] >= lo {
		from := s.left - s.lens[0]
		s.err = s.leave(s.grads.Slice(from, s.left))
		s.left, s.lens = from, s.lens[1:]
	}
}
