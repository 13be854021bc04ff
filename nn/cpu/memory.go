package cpu

import (
	"unsafe"

	"github.com/ringtrain/ringtrain/nn"
)

// alignment of every Buffer, in float32: 64 bytes. Registers are loaded fastest from there,
// and an OpenBLAS may treat elements before it differently.
const alignment = 16

// aligned returns n zeroed float32, aligned to 64 bytes.
func aligned(n int) []float32 {
	v := make([]float32, n+alignment-1)
	preferHugePages(v)
	past := int(uintptr(unsafe.Pointer(unsafe.SliceData(v))) / 4 % alignment)
	skip := (alignment - past) % alignment
	return v[skip : skip+n : skip+n]
}

// Alloc returns memory on Go's heap.
func (b *Backend) Alloc(n int) nn.Buffer { return nn.Host(aligned(n)) }

// AllocShared implements nn.Sharer.
func (b *Backend) AllocShared(n int) nn.Buffer {
	if b.shared != nil {
		if v := b.shared(n); v != nil {
			return nn.Host(v)
		}
	}
	return b.Alloc(n)
}

// AllocInts returns memory on Go's heap.
func (b *Backend) AllocInts(n int) nn.Buffer {
	v := aligned(n)
	return nn.HostInts(unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(v))), n))
}

// Temp returns memory that Recycle reclaims.
func (b *Backend) Temp(n int) nn.Buffer { return nn.Host(b.temp.take(n)) }

// Recycle implements nn.Memory.
func (b *Backend) Recycle() { b.temp.recycle() }

// Copy implements nn.Memory; dst and src may overlap.
func (b *Backend) Copy(dst nn.Buffer, src []float32) { copyAll(dst.Float32s(), src) }

// CopyInts implements nn.Memory; dst and src may overlap.
func (b *Backend) CopyInts(dst nn.Buffer, src []int32) { copyAll(dst.Int32s(), src) }

// Read implements nn.Memory; dst and src may overlap.
func (b *Backend) Read(dst []float32, src nn.Buffer) { copyAll(dst, src.Float32s()) }

// Zero implements nn.Memory.
func (b *Backend) Zero(v nn.Buffer) {
	clear(v.Float32s())
	clear(v.Int32s())
}

// copyAll copies src to dst, which must have the same length.
func copyAll[T any](dst, src []T) {
	if len(dst) != len(src) {
		panic("cpu: copy between different lengths, or to or from device memory")
	}
	copy(dst, src)
}

// Release implements nn.Releaser.
func (b *Backend) Release(v nn.Buffer) { b.temp.release(v.Float32s()) }

// An arena hands out temporary memory from chunks. After one or two steps it has a single
// chunk that is large enough for a step, and allocates no more. It hands out released memory
// of the right size first, the latest first.
type arena struct {
	chunks   [][]float32
	used     int                // elements in use in the last chunk
	taken    map[*float32]int   // the length of each vector in use
	released map[int][]*float32 // vectors no longer in use, by length
}

// smallestChunk is the smallest allocation, in float32.
const smallestChunk = 1 << 14

func (a *arena) take(n int) []float32 {
	if free := a.released[n]; len(free) > 0 {
		last := len(free) - 1
		v := unsafe.Slice(free[last], n)
		a.released[n] = free[:last]
		a.taken[free[last]] = n
		return v
	}
	size := (n + alignment - 1) / alignment * alignment
	last := len(a.chunks) - 1
	if last < 0 || a.used+size > len(a.chunks[last]) {
		grow := smallestChunk
		if last >= 0 {
			grow = 2 * len(a.chunks[last])
		}
		a.chunks = append(a.chunks, aligned(max(grow, size)))
		a.used = 0
		last++
	}
	v := a.chunks[last][a.used : a.used+n : a.used+n]
	a.used += size
	if n > 0 {
		if a.taken == nil {
			a.taken, a.released = map[*float32]int{}, map[int][]*float32{}
		}
		a.taken[&v[0]] = n
	}
	return v
}

// release makes a whole vector available for take. It ignores others.
func (a *arena) release(v []float32) {
	if len(v) == 0 || a.taken[&v[0]] != len(v) {
		return
	}
	delete(a.taken, &v[0])
	a.released[len(v)] = append(a.released[len(v)], &v[0])
}

// recycle frees all temporary memory and merges several chunks into one of
// their total size.
func (a *arena) recycle() {
	clear(a.taken)
	for n, free := range a.released {
		clear(free)
		a.released[n] = free[:0]
	}
	if len(a.chunks) > 1 {
		total := 0
		for _, c := range a.chunks {
			total += len(c)
		}
		a.chunks = append(a.chunks[:0:0], aligned(total))
	}
	a.used = 0
}
