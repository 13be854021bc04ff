package cuda

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
)

// Info describes a device.
type Info struct {
	Index           int    `json:"index"` // as CUDA_VISIBLE_DEVICES leaves it
	Name            string `json:"name"`
	Major           int    `json:"major"` // compute capability
	Minor           int    `json:"minor"`
	Memory          uint64 `json:"memory"` // bytes
	Multiprocessors int    `json:"multiprocessors"`
	SharedMemory    int    `json:"shared_memory"` // bytes that a block may ask for
	L2              int    `json:"l2"`            // bytes
}

// Arch is the architecture that kernels are compiled for, "sm_90".
func (i Info) Arch() string { return fmt.Sprintf("sm_%d%d", i.Major, i.Minor) }

// Devices describes the devices of this machine that the process may use. The
// error is that of Available.
func Devices() ([]Info, error) {
	n, err := openDriver()
	if err != nil {
		return nil, err
	}
	infos := make([]Info, n)
	for i := range infos {
		if infos[i], err = deviceInfo(i); err != nil {
			return nil, fmt.Errorf("device %d: %w", i, err)
		}
	}
	return infos, nil
}

// A Device is a GPU with a thread of its own, on which its primary context is
// current: the one context that NCCL and cuBLASLt use too.
type Device struct {
	info   Info
	calls  chan call
	quit   chan struct{}
	once   sync.Once
	ended  chan struct{} // closed after the thread is done with the context
	thread int           // the operating system's number of it
	err    error         // of the release; read after ended
}

// A call is what the thread is to run, and where it answers.
type call struct {
	fn     func() error
	answer chan outcome
}

// An outcome is how a function ended: with an error, or with a panic.
type outcome struct {
	err      error
	panicked *Panic
}

// A Panic is what Do panics with when the function that it ran did.
type Panic struct {
	Value any    // what the function panicked with
	Stack []byte // of the device's thread at that moment
}

// Error is the value and the stack, for the runtime to print.
func (p *Panic) Error() string {
	return fmt.Sprintf("%v\n\non the thread of a device:\n%s", p.Value, p.Stack)
}

// Unwrap is the value, if that is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error) // nil is no error
	return err
}

// Open takes hold of device index. Two Devices of one index share the context
// and its memory, and have a thread each.
func Open(index int) (*Device, error) {
	n, err := openDriver()
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= n {
		return nil, fmt.Errorf("%w: there is no device %d, the devices are 0 to %d: see what nvidia-smi says, and CUDA_VISIBLE_DEVICES", ErrUnavailable, index, n-1)
	}
	info, err := deviceInfo(index)
	if err != nil {
		return nil, fmt.Errorf("device %d: %w", index, err)
	}
	d := &Device{info: info, calls: make(chan call), quit: make(chan struct{}), ended: make(chan struct{})}
	started := make(chan error)
	go d.own(started, func() error { return retainPrimary(index) }, func() error { return releasePrimary(index) })
	if err := <-started; err != nil {
		return nil, fmt.Errorf("device %d (%s): %w", index, info.Name, err)
	}
	return d, nil
}

// Info describes the device.
func (d *Device) Info() Info { return d.info }

// own is the device's thread. It ends after Close, and if a function that it was
// given ended the goroutine, as a failing test does. retain and release take
// hold of the context on it, and let go.
func (d *Device) own(started chan<- error, retain, release func() error) {
	runtime.LockOSThread() // and the thread ends with the goroutine
	defer close(d.ended)
	d.thread = threadID()
	if err := retain(); err != nil {
		started <- err
		return
	}
	defer func() { d.err = release() }()
	started <- nil
	for {
		select {
		case c := <-d.calls:
			c.run()
		case <-d.quit:
			return
		}
	}
}

// run answers however fn ends.
func (c call) run() {
	var o outcome
	returned := false
	defer func() {
		if !returned {
			if v := recover(); v != nil {
				o.panicked = &Panic{v, debug.Stack()}
			} else {
				o.err = fmt.Errorf("%w: what ran on its thread ended the goroutine", ErrClosed)
			}
		}
		c.answer <- o
	}()
	o.err = c.fn()
	returned = true
}

// Do runs fn on the device's thread and returns its error, or ctx's if fn did
// not start. A panic of fn becomes one here, with a *Panic. Inside fn, Do runs what it is given
// at once. A change of threads costs tens of microseconds, so fn should be as
// much as possible: a whole step, not a kernel.
func (d *Device) Do(ctx context.Context, fn func() error) error {
	select {
	case <-d.ended: // and another thread may have its number
		return ErrClosed
	default:
	}
	if d.thread == threadID() {
		return fn()
	}
	c := call{fn, make(chan outcome, 1)}
	select {
	case d.calls <- c:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-d.ended:
		return ErrClosed
	}
	o := <-c.answer
	if o.panicked != nil {
		panic(o.panicked)
	}
	return o.err
}

// Close waits for the function that runs in Do, releases the context and ends
// the thread. It is not called from inside Do. Closing again does nothing.
func (d *Device) Close() error {
	d.once.Do(func() { close(d.quit) })
	<-d.ended
	return d.err
}
