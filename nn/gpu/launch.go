package gpu

import (
	"fmt"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/cuda/kernels"
	"github.com/ringtrain/ringtrain/nn"
)

// A kernel is a device function, and how it divides its items among blocks.
type kernel struct {
	function cuda.Function
	shape    kernels.Shape
}

// load loads all kernels of kernels.List.
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

// launch queues a kernel of kernels.List for a number of items, and nothing for none.
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

// queue queues work other than our kernels.
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

// Queue queues work that is not the backend's own, in order with the backend's. It
// calls fn at once to put the work on a stream. Inside Record, fn is called again for
// the capture and for repetitions without a graph, so its work must be allowed in a
// capture. An error of fn becomes the backend's failure. what names the work in errors.
func (b *Backend) Queue(what string, fn func(cuda.Stream) error) {
	b.queue(what, fn)
	b.changesAll()
}

// at returns a Buffer as an argument that the kernel may change.
func (b *Backend) at(v nn.Buffer) cuda.Arg { return b.ptr(v).Arg() }

// reads returns a Buffer as an argument that the kernel only reads. Unlike at, it keeps
// the copies of the Buffer that BF16 has made for products.
func (b *Backend) reads(v nn.Buffer) cuda.Arg { return b.address(v).Arg() }

// count returns a number of elements as an argument.
func count(n int) cuda.Arg { return cuda.Int64(int64(n)) }

// number returns n as a C int argument.
func number(n int) cuda.Arg {
	if int(int32(n)) != n {
		panic(fmt.Sprintf("gpu: %d rows or columns overflow a kernel's int", n))
	}
	return cuda.Int32(int32(n))
}

// rows returns the number of rows of v.
func rows(method string, v nn.Buffer, width int) int {
	need(method, width > 0 && v.Len()%width == 0)
	return v.Len() / width
}
