package bench

import (
	"context"

	"github.com/ringtrain/ringtrain/collective"
)

// A Device is memory that calls work on and that the host does not reach, as that
// of a GPU. All is done in the order of the calls, those of the group included,
// and in the goroutine of Run.
type Device interface {
	// Alloc makes count elements, which stay until after Run.
	Alloc(t collective.DType, count int) (collective.Vector, error)
	// Write copies src to dst, Read src to dst. Both wait.
	Write(dst collective.Vector, src []byte) error
	Read(dst []byte, src collective.Vector) error
	// Copy and Clear are queued; dst and src are as long.
	Copy(dst, src collective.Vector) error
	Clear(v collective.Vector) error
	// Wait waits for all that was queued.
	Wait(ctx context.Context) error
}

// places are the memory of the largest size: where calls work, and on a device
// also where the input stays. Zero Vectors mean Go's heap.
type places struct{ work, given collective.Vector }

// sameMemory reports whether two vectors begin at one place.
func sameMemory(a, b collective.Vector) bool {
	_, at, remote := a.Device()
	_, too, both := b.Device()
	if remote || both {
		return remote && both && at == too
	}
	return &host(a)[0] == &host(b)[0]
}

// move copies src to dst unless they are the same memory.
func (s *Spec) move(dst, src collective.Vector) error {
	switch {
	case sameMemory(dst, src):
		return nil
	case s.Device != nil:
		return s.Device.Copy(dst, src)
	}
	copy(host(dst), host(src))
	return nil
}

// ready makes the operands of an iteration: memory for results is cleared.
func (t *trial) ready(ctx context.Context) error {
	if t.spec.Device == nil {
		clear(host(t.work))
	} else if err := t.spec.Device.Clear(t.work); err != nil {
		return err
	}
	if err := t.spec.move(t.src, t.given); err != nil || t.spec.Device == nil {
		return err
	}
	return t.spec.Device.Wait(ctx)
}

// result is what a call left, in host memory.
func (t *trial) result() (collective.Vector, error) {
	if t.spec.Device == nil {
		return t.dst, nil
	}
	return t.got, t.spec.Device.Read(host(t.got), t.dst)
}
