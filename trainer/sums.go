package trainer

import (
	"context"

	"github.com/ringtrain/ringtrain/nn"
)

// Sums sums gradients over the ranks concurrently with the backend's other work.
// The calls of gpu's Backend.Aside and Backend.Join with ncclgroup's Engine.Queued
// are an example. All ranks make the same calls in the same order; nothing checks
// that they do.
type Sums interface {
	// Sum queues the sum of a part of the gradients, in place, after all work queued so
	// far. Work queued later does not wait for it and must not touch that part before
	// Join. A recording repeats only what Sum queues, not what else it does.
	Sum(grads nn.Buffer) error
	// Join makes all work queued later wait for the sums.
	Join() error
	// Wait waits until all work queued so far is done, sums included, or until ctx ends.
	// It returns the error of the backend or of the sums.
	Wait(ctx context.Context) error
}

// A sender sends the gradients of one backward pass in buckets, each as soon as it
// is complete.
type sender struct {
	grads nn.Buffer
	lens  []int // of the buckets that have not left, see Buckets
	left  int   // gradients from here on have left
	leave func(bucket nn.Buffer) error
	err   error
}

func newSender(grads nn.Buffer, lens []int, leave func(bucket nn.Buffer) error) *sender {
	return &sender{grads: grads, lens: lens, left: grads.Len(), leave: leave}
}

// final sends the buckets that are complete if gradients from lo on are. It is for
// nn.Pass.Final.
func (s *sender) final(lo int) {
	for len(s.lens) > 0 && s.err == nil && s.left-s.lens[0] >= lo {
		from := s.left - s.lens[0]
		s.err = s.leave(s.grads.Slice(from, s.left))
		s.left, s.lens = from, s.lens[1:]
	}
}
