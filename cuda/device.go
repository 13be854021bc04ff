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
	Index           int    `json:"index"` // among the devices that CUDA_VISIBLE_DEVICES leaves
	Name            string `json:"name"`
	Major           int    `json:"major"` // compute capability
	Minor           int    `json:"minor"`
	Memory          uint64 `json:"memory"` // bytes
	Multiprocessors int    `json:"multiprocessors"`
	SharedMemory    int    `json:"shared_memory"` // bytes that a block may request
	L2              int    `json:"l2"`            // bytes
}

// Arch returns the architecture for which to compile kernels, such as "sm_90".
func (i Info) Arch() string { return fmt.Sprintf("sm_%d%d", i.Major, i.Minor) }

// Devices describes the devices that this process may use. The error is that of
// Available, or wraps an *Error.
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

// A Device is a GPU with its own thread, on which its primary context is current. NCCL
// and cuBLASLt use that context too.
type Device struct {
	info   Info
	calls  chan call
	quit   chan struct{}
	once   sync.Once
	ended  chan struct{} // closed after the thread has released the context
	thread int           // the operating system's thread ID
	err    error         // result of the release; read it only after ended is closed
}

// A call is a function for the thread to run, and the channel for its outcome.
type call struct {
	fn     func() error
	answer chan outcome
}

// An outcome is how a function ended: with an error, or with a panic.
type outcome struct {
	err      error
	panicked *Panic
}

// A Panic is the value that Do panics with after the function it ran has panicked.
type Panic struct {
	Value any    // the function's panic value
	Stack []byte // of the device's thread when it panicked
}

// Error returns the value and the stack, for the runtime to print.
func (p *Panic) Error() string {
	return fmt.Sprintf("%v\n\non the thread of a device:\n%s", p.Value, p.Stack)
}

// Unwrap returns the value if it is an error, and otherwise nil.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// Open opens the device with this index. Two Devices with the same index share the
// context and its memory, and each has its own thread.
func Open(index int) (*Device, error) {
	n, err := openDriver()
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= n {
		return nil, fmt.Errorf("%w: there is no device %d, the devices are 0 to %d: check nvidia-smi and CUDA_VISIBLE_DEVICES", ErrUnavailable, index, n-1)
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

// own is the device's thread. It ends after Close, or if a function that it runs ends the
// goroutine, as a failing test does. retain and release acquire and release the context.
func (d *Device) own(started chan<- error, retain, release func() error) {
	runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
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

// run calls fn and sends its outcome, even if fn panics or ends the goroutine.
func (c call) run() {
	var o outcome
	returned := false
	defer func() {
		if !returned {
			if v := recover(); v != nil {
				o.panicked = &Panic{v, debug.Stack()}
			} else {
				o.err = fmt.Errorf("%w: the function that it ran ended the goroutine", ErrClosed)
			}
		}
		c.answer <- o
	}()
	o.err = c.fn()
	returned = true
}

// Do runs fn on the device's thread and returns its error, or that of ctx if ctx ends
// before fn starts. If fn panics, Do panics with a *Panic. A nested Do runs its function
// at once. Switching threads costs tens of microseconds, so put as much as possible into
// fn: a whole step rather than a kernel.
func (d *Device) Do(ctx context.Context, fn func() error) error {
	select {
	case <-d.ended: // checked first, because another thread may have reused the ID
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

// Close waits for the function that Do is running, releases the context and ends the
// thread. Do not call it inside Do. A second Close does nothing.
func (d *Device) Close() error {
	d.once.Do(func() { close(d.quit) })
	<-d.ended
	return d.err
}
