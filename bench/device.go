package bench

import (
	"context"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/fold"
)

// A Device is memory that the host cannot reach, such as a GPU's. Its methods and the
// group's calls take effect in the order in which Run makes them, in one goroutine.
type Device interface {
	// Alloc makes count elements, which must stay until Run has returned.
	Alloc(t collective.DType, count int) (collective.Vector, error)
	// Write and Read copy src to dst and wait.
	Write(dst collective.Vector, src []byte) error
	Read(dst []byte, src collective.Vector) error
	// Copy and Clear are queued. dst and src have equal lengths.
	Copy(dst, src collective.Vector) error
	Clear(v collective.Vector) error
	// Wait waits for everything that was queued.
	Wait(ctx context.Context) error
}

// places has the memory for the largest size: for calls, and on a device also for the
// input. Zero Vectors mean Go's heap.
type places struct{ work, given collective.Vector }

// sameMemory reports whether two vectors start at the same address.
func sameMemory(a, b collective.Vector) bool {
	_, at, remote := a.Device()
	_, too, both := b.Device()
	if remote || both {
		return remote && both && at == too
	}
	return &host(a)[0] == &host(b)[0]
}

// fill copies the input to where a call in place expects it.
func (s *Spec) fill(v *operands) error {
	if !v.apart {
		return nil
	}
	return s.move(v.dst, v.src)
}

// move copies src to dst.
func (s *Spec) move(dst, src collective.Vector) error {
	if s.Device != nil {
		return s.Device.Copy(dst, src)
	}
	fold.Copy(host(dst), host(src)) // as layers write gradients
	return nil
}

// ready clears the memory for results and fills in the input of an iteration.
func (t *trial) ready(ctx context.Context) error {
	if t.spec.Device == nil {
		clear(t.clears)
	} else if err := t.spec.Device.Clear(t.work); err != nil {
		return err
	}
	if t.refill {
		if err := t.spec.move(t.src, t.given); err != nil {
			return err
		}
	}
	if t.spec.Device == nil {
		return nil
	}
	return t.spec.Device.Wait(ctx)
}
