package collective

import (
	"fmt"
	"unsafe"
)

// A Vector is n elements of one DType in host or device memory. It does not own
// the memory. The caller keeps the memory alive, and lets nothing else change
// it, until the call that got the Vector has returned.
type Vector struct {
	host   unsafe.Pointer // nil: device memory, or empty
	addr   uintptr        // device address
	n      int
	arena  int // index of the first element in its arena
	device int
	dtype  DType
}

// Of returns a Vector of a slice. It shares the elements, without copying.
func Of[T Element](s []T) Vector {
	return Vector{host: unsafe.Pointer(unsafe.SliceData(s)), n: len(s), device: -1, dtype: TypeOf[T]()}
}

// Of16 returns a Vector of 16-bit floats, Float16 or BFloat16, given by their
// bits. For any other type it returns a zero Vector, which every call refuses.
func Of16(bits []uint16, t DType) Vector {
	if t != Float16 && t != BFloat16 {
		return Vector{}
	}
	return Vector{host: unsafe.Pointer(unsafe.SliceData(bits)), n: len(bits), device: -1, dtype: t}
}

// OfBytes returns a Vector of type t over memory that is aligned for it and
// holds whole elements.
func OfBytes(b []byte, t DType) (Vector, error) {
	width := t.Size()
	switch {
	case width == 0:
		return Vector{}, fmt.Errorf("collective: OfBytes: %v is not an element type", t)
	case len(b)%width != 0 || uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(width) != 0:
		return Vector{}, fmt.Errorf("collective: OfBytes: %d bytes at %p: not aligned, or not a whole number of elements of %v", len(b), unsafe.SliceData(b), t)
	}
	return Vector{host: unsafe.Pointer(unsafe.SliceData(b)), n: len(b) / width, device: -1, dtype: t}, nil
}

// Elements returns a Vector's memory as a slice. It is nil if the elements have
// another type or lie in device memory.
func Elements[T Element](v Vector) []T {
	if v.dtype != TypeOf[T]() || v.device >= 0 {
		return nil
	}
	return unsafe.Slice((*T)(v.host), v.n)
}

// OnDevice returns a Vector of n elements of type t that begin at a device
// address. Only an Engine that reaches that device accepts it.
func OnDevice(device int, addr uintptr, n int, t DType) Vector {
	return Vector{addr: addr, n: n, device: device, dtype: t}
}

// At sets the vector's offset in a larger array, its arena, in elements.
// Reductions fold by blocks of the arena. So an arena reduced in several calls
// gets the same bits as in one call, if each part has its offset. The offset
// must be the same on every rank.
func (v Vector) At(offset int) Vector {
	v.arena = offset
	return v
}

// Slice returns the part [lo, hi) of the vector, which keeps its offset in the
// arena. Like a slice expression, it panics if the bounds are outside the
// vector.
func (v Vector) Slice(lo, hi int) Vector {
	_ = unsafe.Slice(&struct{}{}, v.n)[lo:hi] // checks the bounds, also for device memory
	if v.host != nil {
		v.host = unsafe.Pointer(unsafe.SliceData(v.bytes()[lo*v.dtype.Size() : hi*v.dtype.Size()]))
	} else {
		v.addr += uintptr(lo * v.dtype.Size())
	}
	v.n, v.arena = hi-lo, v.arena+lo
	return v
}

// Len returns the number of elements.
func (v Vector) Len() int { return v.n }

// Bytes returns the size in bytes.
func (v Vector) Bytes() int { return v.n * v.dtype.Size() }

// DType returns the type of the elements.
func (v Vector) DType() DType { return v.dtype }

// Arena returns the offset set by At.
func (v Vector) Arena() int { return v.arena }

// Host returns the vector's memory as bytes, in the machine's byte order, and
// whether the CPU can address it.
func (v Vector) Host() (b []byte, ok bool) {
	if v.device >= 0 && v.dtype != 0 || v.host == nil && v.n > 0 {
		return nil, false
	}
	return v.bytes(), true
}

// Device returns the device's index and the address on it, and whether the
// vector lies in device memory.
func (v Vector) Device() (device int, addr uintptr, ok bool) {
	return v.device, v.addr, v.device >= 0 && v.dtype != 0
}

// String returns the vector's type, length and position for error messages, e.g.
// "float32[1000] at 4096".
func (v Vector) String() string {
	where := ""
	if v.device >= 0 && v.dtype != 0 { // the zero Vector is nowhere
		where = fmt.Sprintf(" on device %d", v.device)
	}
	if v.arena != 0 {
		where += fmt.Sprintf(" at %d", v.arena)
	}
	return fmt.Sprintf("%v[%d]%s", v.dtype, v.n, where)
}

// memory is Host without a copy of the vector. It returns nil for device memory.
func (v *Vector) memory() []byte {
	if v.device >= 0 && v.dtype != 0 {
		return nil
	}
	return unsafe.Slice((*byte)(v.host), v.n*v.dtype.Size())
}

func (v Vector) bytes() []byte {
	return unsafe.Slice((*byte)(v.host), v.n*v.dtype.Size())
}

// onHost reports whether the vector lies in host memory and is not the zero
// Vector.
func (v *Vector) onHost() bool {
	return v.device < 0 && v.dtype.Size() != 0 && (v.host != nil || v.n == 0) // not that of OnDevice with a negative device
}

// set is *v = *w, field by field. See Operation for the reason.
func (v *Vector) set(w *Vector) {
	v.host, v.addr, v.n, v.arena, v.device, v.dtype = w.host, w.addr, w.n, w.arena, w.device, w.dtype
}

// same reports whether two vectors are the same memory.
func (v *Vector) same(w *Vector) bool {
	return v.host == w.host && v.addr == w.addr && v.device == w.device && v.n == w.n
}

// overlaps reports whether two vectors share memory.
func (v *Vector) overlaps(w *Vector) bool {
	if v.device != w.device || v.n == 0 || w.n == 0 {
		return false
	}
	at, too := uintptr(v.host)+v.addr, uintptr(w.host)+w.addr // one of the two is 0
	return at < too+uintptr(w.n*w.dtype.Size()) && too < at+uintptr(v.n*v.dtype.Size())
}
