package gpu

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn"
)

// ErrClosed is returned for work given to a Backend after Close.
var ErrClosed = errors.New("gpu: the backend is closed")

// Options configures a Backend. The zero value works.
type Options struct {
	// Device is the number of the GPU, as CUDA_VISIBLE_DEVICES leaves it.
	Device int
	// TF32 lets products and cuDNN's convolutions round their factors to 10 bits of
	// fraction, which tensor cores take.
	TF32 bool
	// BF16 has products round their factors to bfloat16, with 7 bits of fraction,
	// and add up in float32, whatever TF32 says. All else stays float32: weights,
	// gradients, activations, and convolutions. It needs compute capability 8.0. What others than the
	// backend write to memory that was a factor counts after Recycle.
	BF16 bool
	// LeastForCuDNN is the number of multiply-adds from which cuDNN computes a
	// convolution, if cuDNN is installed and Timed is not set. 0 means the constant of
	// this name. If it is negative, cuDNN computes only what Choices name.
	LeastForCuDNN int
	// Timed runs cuBLASLt's candidates for each product to find the fastest, what a
	// layer does as one product and in steps, and convolutions of any size by cuDNN's
	// algorithms and by our kernels. Then another run may choose others, and have other
	// bits, unless it gets this one's Choices.
	Timed bool
	// Choices are what Choices returned in an earlier run on such a device.
	Choices map[string]int
	// Chosen, if not nil, is told what Choices returns whenever there is more of it,
	// before anything is computed that way. Its error is the backend's failure. It
	// is called from inside Do.
	Chosen func(map[string]int) error
	// Plain repeats recordings launch by launch and not as graphs, for profilers
	// and to find the kernel that fails.
	Plain bool
	// Notice, if not nil, is told in one line what New does otherwise than usual, and
	// later, from inside Do, if there is a cuDNN that does not work.
	Notice func(line string)
	// Cache is where compiled kernels are kept; "" is the user's cache directory.
	Cache string
}

// A Backend computes on one GPU, in one stream; a second has what Aside was given. It belongs to one goroutine at a
// time.
type Backend struct {
	device  *cuda.Device
	info    cuda.Info
	options Options
	depth   int // of calls of Do that are under way
	closed  bool
	freed   error // of Close

	stream       cuda.Stream
	side         side
	module       cuda.Module
	kernels      map[string]kernel
	products     products
	convolutions convolutions
	batch        cuda.Batch // of one launch
	abort        abortWord
	stop         cuda.Ptr // the word's copy, for one update
	ticket       cuda.Ptr // of blocks that add up losses; 0 between kernels
	told         int      // of Choices, how many Chosen knows
	layouts      map[*nn.Params]layout
	rounded      []rounded // factors of products that have not changed since

	lasting  pool // of Alloc
	passing  pool // of Temp
	recorded pool // of Temp in recordings: the next one reuses it
	staging  staging
	random   draws // of Dropout outside recordings

	recording  *recording // under way, or nil
	recordings map[string]*recording
	paces      []*pace
	calls      Calls
	failure    error // the first since Sync
}

var _ nn.Backend = (*Backend)(nil)

// New opens a device. Where there is none the error has cuda.ErrUnavailable and
// says what is missing.
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
		_ = b.Close() // what failed comes first
		return nil, fmt.Errorf("gpu: device %d (%s): %w", o.Device, b.info.Name, err)
	}
	return b, nil
}

const ticketBytes = 4

// start makes what the backend needs, on its thread. What is there if it fails
// is released by Close.
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
	if b.random.at, err = b.lasting.take(randomBytes); err != nil {
		return err
	}
	if b.stop, err = b.lasting.take(stopBytes); err != nil {
		return err
	}
	if b.ticket, err = b.lasting.take(ticketBytes); err != nil {
		return err
	}
	if err := b.stream.Zero(b.ticket, ticketBytes); err != nil {
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

// Choices are which of cuBLASLt's candidates each kind of product uses, whether the
// methods of nn.Fuser are one product, and which algorithm of cuDNN a kind of
// convolution uses, -1 for our kernels: what a later run needs to have the same bits.
func (b *Backend) Choices() map[string]int {
	all := b.products.blas.Choices()
	maps.Copy(all, b.products.fused)
	maps.Copy(all, b.convolutions.ways)
	return all
}

// tell has Chosen know of new choices.
func (b *Backend) tell() {
	if b.options.Chosen == nil || b.failure != nil {
		return
	}
	if all := b.Choices(); len(all) > b.told {
		b.told = len(all)
		b.note("Options.Chosen", b.options.Chosen(all))
	}
}

// Do runs fn on the device's thread. A panic of fn becomes one here, with a
// *cuda.Panic. Inside fn, Do runs what it is given at once.
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
			_ = b.device.Close() // Close was called in fn and has released the rest
		}
	}()
	return b.device.Do(ctx, fn)
}

// Sync waits for all work so far, or for ctx, and returns the first failure
// since the last Sync. If ctx ends, the work goes on and the failure stays.
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
			err = b.failure // it came first
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
	if b.side.open { // not by Join, which does nothing after a failure
		if err := b.side.join(b.stream); err != nil {
			return err
		}
		b.changesAll()
	}
	return b.stream.Sync(ctx)
}

// Close waits for the device and frees all memory. Inside Do it leaves the
// thread to that call of Do, which ends it.
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

// release frees everything in the order that its users need: graphs first. It
// goes on after a failure, and returns the first, which after a failed kernel is
// that of the kernel.
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

// fail keeps the first failure.
func (b *Backend) fail(err error) {
	if b.recording != nil {
		err = fmt.Errorf("recording %q: %w", b.recording.key, err)
	}
	if b.failure == nil {
		b.failure = err
	}
}

// refuse is the error of a method that a recording could not repeat.
func refuse(method string) error {
	return fmt.Errorf("%s inside Record cannot be repeated by a graph; call it before or after", method)
}
