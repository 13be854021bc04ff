package cpu

import (
	"context"
	"errors"

	"github.com/ringtrain/ringtrain/nn"
)

// ErrClosed is returned for work given to a Backend after Close.
var ErrClosed = errors.New("cpu: the backend is closed")

// Options configures a Backend. The zero value works.
type Options struct {
	// BLAS multiplies matrices; nil is OpenBLAS where the machine has it (see
	// EnvOpenBLAS), and gonum's Go implementation elsewhere.
	BLAS BLAS

	// Shared makes memory for n gradients, zeroed and aligned to 64 bytes, that
	// other processes reach in place; nil, or a nil result: Go's heap.
	Shared func(n int) []float32
}

// A Backend computes in host memory. It belongs to one goroutine at a time;
// several Backends share nothing.
type Backend struct {
	blas   BLAS
	fault  error // why the backend cannot be used: what the user asked for, or Close
	temp   arena
	shared func(n int) []float32 // of Options; may be nil
}

var _ nn.Backend = (*Backend)(nil)

// New returns a Backend. If the environment asks for an OpenBLAS that cannot be
// had, Do, Record and Sync return the reason.
func New(o Options) *Backend {
	b := &Backend{blas: o.BLAS, shared: o.Shared}
	if b.blas == nil {
		b.blas, b.fault = findBLAS()
	}
	return b
}

// Record runs fn and returns fn: on a host there is nothing to save by
// recording.
func (b *Backend) Record(_ string, fn func() error) (func() error, error) {
	if b.fault != nil {
		return nil, b.fault
	}
	return fn, fn()
}

// Do runs fn on the calling goroutine.
func (b *Backend) Do(ctx context.Context, fn func() error) error {
	if b.fault != nil {
		return b.fault
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return fn()
}

// Sync has nothing to wait for.
func (b *Backend) Sync(ctx context.Context) error {
	if b.fault != nil {
		return b.fault
	}
	return ctx.Err()
}

// Close lets go of temporary memory. What Alloc returned is garbage once nobody
// refers to it.
func (b *Backend) Close() error {
	b.fault = ErrClosed
	b.temp = arena{}
	return nil
}
