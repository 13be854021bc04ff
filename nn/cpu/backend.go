package cpu

import (
	"context"
	"errors"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/ringtrain/ringtrain/nn"
)

// ErrClosed is returned for work given to a Backend after Close.
var ErrClosed = errors.New("cpu: the backend is closed")

// BLAS is the part of gonum's blas.Float32 that the backend uses: row-major C =
// alpha·op(A)·op(B) + beta·C. Its result may depend on shapes, values and on
// addresses modulo 64 bytes, and on nothing else.
type BLAS interface {
	Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int)
}

// Options configures a Backend. The zero value works.
type Options struct {
	// BLAS multiplies matrices; nil is gonum's Go implementation.
	BLAS BLAS
}

// A Backend computes in host memory. It belongs to one goroutine at a time;
// several Backends share nothing.
type Backend struct {
	blas   BLAS
	temp   arena
	closed bool
}

var _ nn.Backend = (*Backend)(nil)

// New returns a Backend.
func New(o Options) *Backend {
	if o.BLAS == nil {
		o.BLAS = gonum.Implementation{}
	}
	return &Backend{blas: o.BLAS}
}

// Record runs fn and returns fn: on a host there is nothing to save by
// recording.
func (b *Backend) Record(_ string, fn func() error) (func() error, error) {
	if b.closed {
		return nil, ErrClosed
	}
	return fn, fn()
}

// Do runs fn on the calling goroutine.
func (b *Backend) Do(ctx context.Context, fn func() error) error {
	if b.closed {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return fn()
}

// Sync has nothing to wait for.
func (b *Backend) Sync(ctx context.Context) error {
	if b.closed {
		return ErrClosed
	}
	return ctx.Err()
}

// Close lets go of temporary memory. What Alloc returned is garbage once nobody
// refers to it.
func (b *Backend) Close() error {
	b.closed = true
	b.temp = arena{}
	return nil
}
