package gpu

import (
	"sync"
	"sync/atomic"

	"github.com/ringtrain/ringtrain/cuda"
)

// The kernels' struct Abort. Its first word is set by Abort, and by the device when it
// withholds an update. The last two are 1 + the first step whose update was withheld.
const (
	abortBytes = 16
	withheldAt = 2 // in words
)

// An abortWord is the kernels' struct Abort, in host memory that they read and write. The
// lock keeps close from freeing it while another goroutine uses it.
type abortWord struct {
	sync.Mutex
	memory *cuda.Pinned // nil before open and after close
}

func (a *abortWord) open(d *cuda.Device) error {
	m, err := d.AllocPinned(abortBytes, true)
	if err != nil {
		return err
	}
	a.Lock()
	defer a.Unlock()
	a.memory = m
	return nil
}

func (a *abortWord) set() {
	a.Lock()
	defer a.Unlock()
	if a.memory != nil {
		atomic.StoreUint32(&a.memory.Uint32s()[0], 1)
	}
}

func (a *abortWord) reset() {
	a.Lock()
	defer a.Unlock()
	if a.memory == nil {
		return
	}
	words := a.memory.Uint32s()
	atomic.StoreUint32(&words[withheldAt], 0)
	atomic.StoreUint32(&words[withheldAt+1], 0)
	atomic.StoreUint32(&words[0], 0)
}

// withheld returns the first step whose update was withheld, if there is one.
func (a *abortWord) withheld() (step int, ok bool) {
	a.Lock()
	defer a.Unlock()
	if a.memory == nil {
		return 0, false
	}
	words := a.memory.Uint32s()
	n := uint64(atomic.LoadUint32(&words[withheldAt])) | uint64(atomic.LoadUint32(&words[withheldAt+1]))<<32
	return int(n) - 1, n > 0
}

// arg returns the struct's address for a kernel. Only the backend's owner calls it.
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

// Abort withholds the updates of all steps whose Commit has not run on the device yet, and
// votes against those whose Vote has not run (see nn.Committer). Call it before you
// interrupt this rank's sums. It does not affect updates that no Commit precedes. It may be
// called from any goroutine. After Close it does nothing.
func (b *Backend) Abort() { b.abort.set() }

// Resume undoes Abort and forgets withheld updates. No Vote or Commit may be in progress. It
// may be called from any goroutine. After Close it does nothing.
func (b *Backend) Resume() { b.abort.reset() }
