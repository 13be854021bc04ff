package gpu

import (
	"sync"
	"sync/atomic"

	"github.com/ringtrain/ringtrain/cuda"
)

// An abortWord is a word of host memory that the optimizers' kernels read. The lock
// keeps close from freeing the word while another goroutine writes it.
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

// arg returns the word's address for a kernel. Only the backend's owner calls it.
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

// Abort makes all updates that start before the next Resume change nothing. It is for
// gradients that cannot be trusted, for example after an interrupted collective. An
// update that is running continues as it began if it updates all parameters at once
// (nn.ArenaUpdate). Otherwise it may stop between two parameters, or inside one. Abort
// may be called from any goroutine. After Close it does nothing.
func (b *Backend) Abort() { b.abort.set(1) }

// Resume undoes Abort. It may be called from any goroutine. After Close it does
// nothing.
func (b *Backend) Resume() { b.abort.set(0) }
