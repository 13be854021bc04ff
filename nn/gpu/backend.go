package gpu

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn"
)

// ErrClosed is returned for work that a Backend gets after Close.
var ErrClosed = errors.New("gpu: the backend is closed")

// Options configures a Backend. The zero value works.
type Options struct {
	// Device is the index of the GPU among those that CUDA_VISIBLE_DEVICES leaves.
	Device int
	// TF32 lets products and cuDNN's convolutions round their factors to 10 bits of
	// fraction, for tensor cores.
	TF32 bool
	// BF16 makes products round their factors to bfloat16 (7 bits of fraction) and sum
	// in float32, whatever TF32 says. Weights, gradients, activations and convolutions
	// stay float32. It needs compute capability 8.0 or later. If anything but
	// the backend writes to a factor's memory, call Recycle before the next product.
	BF16 bool
	// LeastForCuDNN is the smallest convolution, in multiply-adds, that cuDNN computes
	// if it is installed and Timed is not set. 0 means the constant of this name. If it
	// is negative, cuDNN computes only convolutions that Choices give to it.
	LeastForCuDNN int
	// Timed measures and uses the fastest of cuBLASLt's candidates for each product, of
	// one fused product and separate steps for each layer, and of cuDNN's algorithms and
	// our kernels for convolutions of any size. Another run may choose differently, and
	// so have other bits, unless it gets this run's Choices.
	Timed bool
	// Choices is what Backend.Choices returned in an earlier run on the same kind of
	// device.
	Choices map[string]int
	// Chosen, if not nil, gets the result of Backend.Choices whenever that grows, before
	// the new choice is used. Its error becomes the backend's failure. It is called from
	// inside Do.
	Chosen func(map[string]int) error
	// Plain repeats recordings launch by launch instead of as graphs. It is for profilers
	// and for finding the kernel that fails.
	Plain bool
	// Notice, if not nil, gets one line if New has to use a fallback. It is also called
	// later, from inside Do, if cuDNN is installed but does not work.
	Notice func(line string)
	// Cache is the directory for compiled kernels. "" means that of cuda.UserCache.
	Cache string
}

// A Backend computes on one GPU, in one stream, and a second one for the work of Aside.
// Only one goroutine may use it at a time.
type Backend struct {
	device  *cuda.Device
	info    cuda.Info
	options Options
	depth   int // of nested calls of Do
	closed  bool
	freed   error // result of Close

	stream       cuda.Stream
	side         side
	module       cuda.Module
	kernels      map[string]kernel
	products     products
	convolutions convolutions
	batch        cuda.Batch // reused; holds one launch
	abort        abortWord
	stop         cuda.Ptr // a word; Commit sets it to withhold the updates of a step
	ticket       cuda.Ptr // counts blocks that sum losses; 0 between kernels
	reported     int      // number of choices that Chosen has seen
	layouts      map[*nn.Params]layout
	rounded      []rounded // bfloat16 copies that are still valid

	lasting  pool // for Alloc
	passing  pool // for Temp
	recorded pool // for Temp in recordings, which all share it
	staging  staging
	random   draws // for Dropout outside recordings

	recording  *recording // being made, or nil
	recordings map[string]*recording
	paces      []*pace
	calls      Calls
	failure    error // the first since the last Sync
}

var _ nn.Backend = (*Backend)(nil)

// New opens a device. If there is none, the error wraps cuda.ErrUnavailable and says
// what is missing.
func New(o Options) (*Backend, error) {
	d, err := cuda.Open(o.Device)
	if err != nil {
		return nil, fmt.Errorf("gpu: %w", err)
	}
	b := &Backend{device: d, info: d.Info(), options: o, recordings: map[string]*recording{}, layouts: map[*nn.Params]layout{}}
	for _, p := range []*pool{&b.lasting, &b.passing, &b.recorded} {
		p.device = d
	}
	b.staging.calls = &b.calls
	if err := d.Do(context.Background(), b.start); err != nil {
		_ = b.Close() // err is the cause
		return nil, fmt.Errorf("gpu: device %d (%s): %w", o.Device, b.info.Name, err)
	}
	return b, nil
}

const ticketBytes = 4

// start creates what the backend needs, on the device's thread. If start fails, Close
// releases what it had created.
func (b *Backend) start() (err error) {
	if b.options.BF16 {
		if err := CheckBF16(b.info); err != nil {
			return err
		}
	}
	if b.stream, err = b.device.NewStream(); err != nil {
		return err
	}
	if err := b.side.start(b.device); err != nil {
		return err
	}
	if err := b.abort.open(b.device); err != nil {
		return err
	}
	if err := b.staging.open(b.device); err != nil {
		return err
	}
	if b.random.at, err = b.lasting.next(randomBytes); err != nil {
		return err
	}
	if b.stop, err = b.lasting.next(stopBytes); err != nil {
		return err
	}
	if b.ticket, err = b.lasting.next(ticketBytes); err != nil {
		return err
	}
	if err := b.stream.Zero(b.ticket, ticketBytes); err != nil {
		return err
	}
	if err := b.stream.Zero(b.stop, stopBytes); err != nil {
		return err
	}
	if err := b.load(); err != nil {
		return err
	}
	b.convolutions.plans, b.convolutions.ways = map[cuda.Convolution]*cuda.ConvPlan{}, map[string]int{}
	return b.products.open(b.device, b.options)
}

// Info describes the device.
func (b *Backend) Info() cuda.Info { return b.info }

// Choices returns what a later run needs to get the same bits: which of cuBLASLt's
// candidates each kind of product uses, whether a method of nn.Fuser is one product,
// and which of cuDNN's algorithms a kind of convolution uses, or -1 for our kernels.
func (b *Backend) Choices() map[string]int {
	all := b.products.blas.Choices()
	maps.Copy(all, b.products.fused)
	maps.Copy(all, b.convolutions.ways)
	return all
}

// reportChoices calls Options.Chosen if there are new choices.
func (b *Backend) reportChoices() {
	if b.options.Chosen == nil || b.failure != nil {
		return
	}
	if all := b.Choices(); len(all) > b.reported {
		b.reported = len(all)
		b.note("Options.Chosen", b.options.Chosen(all))
	}
}

// Do runs fn on the device's thread. If fn panics, Do panics with a *cuda.Panic. A
// nested Do runs its function at once.
func (b *Backend) Do(ctx context.Context, fn func() error) error {
	if b.closed {
		return ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	b.depth++
	defer func() {
		if b.depth--; b.depth == 0 && b.closed {
			_ = b.device.Close() // fn called Close, which has released the rest
		}
	}()
	return b.device.Do(ctx, fn)
}

// Sync waits for all queued work and returns the first failure since the last Sync.
// If ctx ends first, Sync returns its error; the work continues and the failure stays.
func (b *Backend) Sync(ctx context.Context) error {
	return b.Do(ctx, func() error {
		if b.recording != nil {
			return fmt.Errorf("gpu: recording %q: %w", b.recording.key, refuse("Sync"))
		}
		err := b.wait(ctx)
		if err != nil && ctx.Err() != nil {
			return err
		}
		if b.failure != nil {
			err = b.failure // earlier than err
		}
		b.failure = nil
		if err != nil {
			return fmt.Errorf("gpu: device %d: %w", b.info.Index, err)
		}
		return nil
	})
}

// wait waits for both streams.
func (b *Backend) wait(ctx context.Context) error {
	if b.side.open { // Join would do nothing after a failure
		if err := b.side.join(b.stream); err != nil {
			return err
		}
		b.changesAll()
	}
	return b.stream.Sync(ctx)
}

// Close waits for the device and frees all memory. If it is called inside Do, the
// outermost Do ends the device's thread.
func (b *Backend) Close() error {
	if b.closed {
		return b.freed
	}
	b.closed = true
	b.freed = b.device.Do(context.Background(), b.release)
	if b.depth == 0 {
		b.freed = errors.Join(b.freed, b.device.Close())
	}
	return b.freed
}

// release frees everything, users before what they use, so graphs come first. It
// continues after a failure and returns the first one. After a failed kernel, that is
// the kernel's.
func (b *Backend) release() error {
	var first error
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	if b.stream != (cuda.Stream{}) {
		note(b.wait(context.Background()))
	}
	for _, r := range b.recordings {
		note(r.destroy())
	}
	for _, p := range b.paces {
		note(p.close())
	}
	note(b.products.close())
	note(b.convolutions.close())
	note(b.staging.close())
	for _, p := range []*pool{&b.recorded, &b.passing, &b.lasting} {
		note(p.close())
	}
	note(b.abort.close())
	if b.module != (cuda.Module{}) {
		note(b.module.Unload())
	}
	note(b.side.close())
	if b.stream != (cuda.Stream{}) {
		note(b.stream.Destroy())
	}
	return first
}

// Fail implements nn.Backend.
func (b *Backend) Fail(err error) { b.fail(err) }

// fail keeps err if it is the first failure since the last Sync.
func (b *Backend) fail(err error) {
	if b.recording != nil {
		err = fmt.Errorf("recording %q: %w", b.recording.key, err)
	}
	if b.failure == nil {
		b.failure = err
	}
}

// refuse returns the error for a method that a recording cannot repeat.
func refuse(method string) error {
	return fmt.Errorf("%s inside Record cannot be repeated by a graph; call it before or after", method)
}
