package gpu

import (
	"sync"
	"sync/atomic"

	"github.com/ringtrain/ringtrain/cuda"
)

// An abortWord is a word of host memory that the optimizers' kernels read. The
// lock keeps it there while another goroutine writes.
type abortWord struct {
	sync.Mutex
	memory *cuda.Pinned // nil before open and after close
}

func (a *abortWord) open(d *cuda.Device) error {
	m, err := d.AllocPinned(4, true)
	if err != nil {
		return err
	}
	a.Lock()
	defer a.Unlock()
	a.memory = m
	return nil
}

func (a *abortWord) set(v uint32) {
	a.Lock()
	defer a.Unlock()
	if a.memory != nil {
		atomic.StoreUint32(&a.memory.Uint32s()[0], v)
	}
}

// arg is where a kernel finds the word. Only the backend's owner calls it.
func (a *abortWord) arg() cuda.Arg { return a.memory.Device().Arg() }

func (a *abortWord) close() error {
	a.Lock()
	defer a.Unlock()
	m := a.memory
	a.memory = nil
	if m == nil {
		return nil
	}
	return m.Free()
}

// Abort makes updates change nothing, from the next to start until Resume: for
// when gradients cannot be trusted, as after a collective that was broken off.
// An update of one parameter after the other that is under way may stop between
// two of them, or inside one; one of all parameters at once ends as it began. It
// may be called from any goroutine; after Close it does nothing.
func (b *Backend) Abort() { b.abort.set(1) }

// Resume ends what Abort began. It may be called from any goroutine; after Close
// it does nothing.
func (b *Backend) Resume() { b.abort.set(0) }
