package gpu

import (
	"fmt"
	"math"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn"
)

// elementBytes is the size of both element types.
const elementBytes = 4

// Alloc implements nn.Memory in device memory.
func (b *Backend) Alloc(n int) nn.Buffer { return b.alloc(n, nn.Float32) }

// AllocInts implements nn.Memory in device memory.
func (b *Backend) AllocInts(n int) nn.Buffer { return b.alloc(n, nn.Int32) }

func (b *Backend) alloc(n int, t nn.DType) nn.Buffer {
	if b.recording != nil {
		b.fail(refuse("Alloc"))
	}
	v := b.allocate(&b.lasting, n, t)
	b.Zero(v)
	return v
}

// Temp returns memory that Recycle makes available again. In a recording the memory
// comes from an arena that all recordings share, so making or repeating another
// recording overwrites it.
func (b *Backend) Temp(n int) nn.Buffer {
	if b.recording != nil {
		return b.allocate(&b.recorded, n, nn.Float32)
	}
	return b.allocate(&b.passing, n, nn.Float32)
}

// allocate returns n elements. If there is no memory, their address is 0, and nothing more
// is computed until Sync has returned the reason.
func (b *Backend) allocate(p *pool, n int, t nn.DType) nn.Buffer {
	var at cuda.Ptr
	if n > 0 && b.failure == nil {
		var err error
		if at, err = p.next(n * elementBytes); err != nil {
			b.fail(fmt.Errorf("no memory for %d %v: %w; make the batch or the model smaller", n, t, err))
		}
	}
	return nn.OnDevice(b.info.Index, uintptr(at), n, t)
}

// Recycle implements nn.Memory.
func (b *Backend) Recycle() {
	clear(b.products.masks)
	b.changesAll()
	b.passing.rewind()
	if b.recording != nil {
		b.recorded.rewind()
	}
}

// Copy implements nn.Memory. It copies src to pinned memory and need not wait for the
// device.
func (b *Backend) Copy(dst nn.Buffer, src []float32) { b.send("Copy", dst, cuda.BytesOf(src)) }

// CopyInts implements nn.Memory, like Copy.
func (b *Backend) CopyInts(dst nn.Buffer, src []int32) { b.send("CopyInts", dst, cuda.BytesOf(src)) }

func (b *Backend) send(method string, dst nn.Buffer, src []byte) {
	if b.recording != nil {
		b.fail(refuse(method))
	}
	need(method, len(src) == dst.Len()*elementBytes)
	if at := b.ptr(dst); b.failure == nil {
		b.note(method, b.staging.send(b.stream, at, src))
	}
}

// Read implements nn.Memory. After a failure it fills dst with NaNs.
func (b *Backend) Read(dst []float32, src nn.Buffer) {
	if b.recording != nil {
		b.fail(refuse("Read"))
	}
	need("Read", len(dst) == src.Len())
	if at := b.ptr(src); b.failure == nil {
		b.note("Read", b.staging.fetch(b.stream, cuda.BytesOf(dst), at))
	}
	if b.failure != nil {
		for i := range dst {
			dst[i] = float32(math.NaN())
		}
	}
}

// Zero implements nn.Memory.
func (b *Backend) Zero(v nn.Buffer) {
	at := b.ptr(v)
	if v.Len() > 0 {
		b.queue("Zero", func(s cuda.Stream) error { return s.Zero(at, v.Len()*elementBytes) })
	}
}

// note calls fail with err, if it is not nil, and the name of the method.
func (b *Backend) note(method string, err error) {
	if err != nil {
		b.fail(fmt.Errorf("%s: %w", method, err))
	}
}

// ptr returns the address of v for a use that may change v. It is 0 if v is empty or its
// allocation failed.
func (b *Backend) ptr(v nn.Buffer) cuda.Ptr {
	at := b.address(v)
	b.changes(at, v.Len()*elementBytes)
	return at
}

// address returns the address of v for a use that only reads.
func (b *Backend) address(v nn.Buffer) cuda.Ptr {
	device, at, ok := v.Device()
	if v.Len() == 0 {
		return 0
	}
	if !ok || device != b.info.Index {
		panic(fmt.Sprintf("gpu: the Buffer is not in the memory of device %d; allocate it from the Backend that computes", b.info.Index))
	}
	if at == 0 { // Alloc or Temp failed
		b.fail(fmt.Errorf("the allocation of this Buffer of %d elements failed", v.Len()))
	}
	return cuda.Ptr(at)
}

// need panics unless the lengths of a method's Buffers fit each other. A kernel would
// write beyond their end.
func need(method string, fit bool) {
	if !fit {
		panic("gpu: " + method + ": the lengths of the Buffers do not match")
	}
}
