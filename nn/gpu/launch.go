package gpu

import (
	"fmt"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/cuda/kernels"
	"github.com/ringtrain/ringtrain/nn"
)

// A kernel is a function of the device and how it divides its items.
type kernel struct {
	function cuda.Function
	shape    kernels.Shape
}

// load makes all kernels ready.
func (b *Backend) load() (err error) {
	if b.module, err = b.open(); err != nil {
		return err
	}
	b.kernels = make(map[string]kernel, len(kernels.List))
	for _, k := range kernels.List {
		f, err := b.module.Function(k.Name)
		if err != nil {
			return err
		}
		b.kernels[k.Name] = kernel{f, k.Shape}
	}
	return nil
}

// launch queues a kernel of kernels.List for some items, of which there may be
// none.
func (b *Backend) launch(name string, items int, args ...cuda.Arg) {
	if items == 0 || b.failure != nil {
		return
	}
	k := b.kernels[name]
	grid, block := k.shape.Of(items, b.info.Multiprocessors)
	b.batch.Reset()
	b.batch.Add(k.function, cuda.Dim(grid), cuda.Dim(block), 0, args...)
	if err := b.batch.Launch(b.stream); err != nil {
		b.fail(err)
		return
	}
	b.calls.Kernels++
	if b.recording != nil {
		b.recording.add(k.function, cuda.Dim(grid), cuda.Dim(block), args)
	}
}

// queue queues what is no kernel of ours.
func (b *Backend) queue(what string, fn func(cuda.Stream) error) {
	if b.failure != nil {
		return
	}
	if err := fn(b.stream); err != nil {
		b.note(what, err)
		return
	}
	b.calls.Others++
	if b.recording != nil {
		b.recording.steps = append(b.recording.steps, step{what: what, fn: fn})
	}
}

// Queue queues other work in its order among the backend's: fn puts it on the
// stream it is given, at once and, inside Record, again when that is captured or
// repeated. Then what fn queues must be allowed in a capture. An error of fn is
// the backend's failure.
func (b *Backend) Queue(what string, fn func(cuda.Stream) error) {
	b.queue(what, fn)
	b.changesAll()
}

// at is a Buffer as an argument that a kernel may change.
func (b *Backend) at(v nn.Buffer) cuda.Arg { return b.ptr(v).Arg() }

// count is a number of elements as an argument.
func count(n int) cuda.Arg { return cuda.Int64(int64(n)) }

// number is an int of C as an argument.
func number(n int) cuda.Arg {
	if int(int32(n)) != n {
		panic(fmt.Sprintf("gpu: %d rows or columns are more than a kernel can count", n))
	}
	return cuda.Int32(int32(n))
}

// rows is how many rows of a width v has.
func rows(method string, v nn.Buffer, width int) int {
	need(method, width > 0 && v.Len()%width == 0)
	return v.Len() / width
}
