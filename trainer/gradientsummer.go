package trainer

import (
	"context"

	"github.com/ringtrain/ringtrain/nn"
)

// A GradientSummer sums gradients over the ranks while the backend does other work.
// The calls of gpu's Backend.Aside and Backend.Join with ncclgroup's Engine.Queued
// are an example. All ranks make the same calls in the same order; nothing checks
// that they do.
type GradientSummer interface {
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
