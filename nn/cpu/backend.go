package cpu

import (
	"context"
	"errors"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu/sgemm"
)

// ErrClosed is returned when a Backend is used after Close.
var ErrClosed = errors.New("cpu: the backend is closed")

// Options configures a Backend. The zero value is valid.
type Options struct {
	// BLAS multiplies matrices. nil means the one that EnvOpenBLAS selects, by default
	// an sgemm.Multiplier.
	BLAS BLAS

	// Shared allocates n float32 for gradients that other processes can access
	// directly, zeroed and aligned to 64 bytes. If Shared is nil or returns nil,
	// gradients are on Go's heap.
	Shared func(n int) []float32
}

// A Backend computes in host memory. It belongs to one goroutine at a time. Backends
// share nothing with each other.
type Backend struct {
	blas   BLAS
	fault  error             // why the backend cannot be used: the requested OpenBLAS is missing, or Close
	heads  *sgemm.Multiplier // of attention, whose products are too small for calls of a BLAS
	failed error             // what Sync returns next; nil if nothing failed
	temp   arena
	shared func(n int) []float32 // from Options; may be nil
}

var _ nn.Backend = (*Backend)(nil)

// New returns a Backend. If the environment asks for an OpenBLAS that cannot be loaded,
// Do, Record and Sync return the reason.
func New(o Options) *Backend {
	b := &Backend{blas: o.BLAS, heads: sgemm.New(), shared: o.Shared}
	if b.blas == nil {
		b.blas, b.fault = chooseBLAS()
	}
	return b
}

// Record runs fn and returns it: recording saves nothing on a host.
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
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return fn()
}

// Sync returns at once: no work is ever pending.
func (b *Backend) Sync(ctx context.Context) error {
	if b.fault != nil {
		return b.fault
	}
	if err := b.failed; err != nil {
		b.failed = nil
		return err
	}
	return context.Cause(ctx)
}

// Fail implements nn.Backend.
func (b *Backend) Fail(err error) {
	if b.failed == nil {
		b.failed = err
	}
}

// Close drops temporary memory. Memory from Alloc is garbage-collected once
// nothing refers to it.
func (b *Backend) Close() error {
	b.fault = ErrClosed
	b.temp = arena{}
	return nil
}
