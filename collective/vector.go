package collective

import (
	"fmt"
	"unsafe"
)

// A Vector is n elements of one DType in host or device memory that it does
// not own: the caller keeps the memory alive and unchanged by others until the
// call that was given the Vector has returned.
type Vector struct {
	host   unsafe.Pointer // nil: device memory, or empty
	addr   uintptr        // device address
	n      int
	arena  int // index in its arena of the first element
	device int
	dtype  DType
}

// Of makes a Vector of a slice. The elements are shared, not copied.
func Of[T Element](s []T) Vector {
	return Vector{host: unsafe.Pointer(unsafe.SliceData(s)), n: len(s), device: -1, dtype: TypeOf[T]()}
}

// Of16 makes a Vector of 16-bit floats, Float16 or BFloat16, that are given by
// their bits. Another type gives a zero Vector, which no call takes.
func Of16(bits []uint16, t DType) Vector {
	if t != Float16 && t != BFloat16 {
		return Vector{}
	}
	return Vector{host: unsafe.Pointer(unsafe.SliceData(bits)), n: len(bits), device: -1, dtype: t}
}

// OfBytes makes a Vector of type t of memory that is aligned for it and holds
// whole elements.
func OfBytes(b []byte, t DType) (Vector, error) {
	width := t.Size()
	switch {
	case width == 0:
		return Vector{}, fmt.Errorf("collective: OfBytes: %v is no type of elements", t)
	case len(b)%width != 0 || uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(width) != 0:
		return Vector{}, fmt.Errorf("collective: OfBytes: %d bytes at %p are no elements of %v", len(b), unsafe.SliceData(b), t)
	}
	return Vector{host: unsafe.Pointer(unsafe.SliceData(b)), n: len(b) / width, device: -1, dtype: t}, nil
}

// Elements is a Vector's memory as a slice; nil if its elements are of another
// type, or in device memory.
func Elements[T Element](v Vector) []T {
	if v.dtype != TypeOf[T]() || v.device >= 0 {
		return nil
	}
	return unsafe.Slice((*T)(v.host), v.n)
}

// OnDevice makes a Vector of n elements of type t that begin at a device
// address. Only an Engine that reaches that device takes it.
func OnDevice(device int, addr uintptr, n int, t DType) Vector {
	return Vector{addr: addr, n: n, device: device, dtype: t}
}

// At says where in a larger array (its arena) the vector begins, in elements.
// Reductions fold by blocks of the arena, so an arena that is reduced by
// several calls gets the same bits as by one call when each part says where it
// lies. Every rank gives the same offset.
func (v Vector) At(offset int) Vector {
	v.arena = offset
	return v
}

// Slice is the part [lo, hi) of the vector. It keeps its place in the arena.
// Like a slice expression it panics when the bounds are outside the vector.
func (v Vector) Slice(lo, hi int) Vector {
	_ = unsafe.Slice(&struct{}{}, v.n)[lo:hi] // the check of bounds, for all kinds of memory
	if v.host != nil {
		v.host = unsafe.Pointer(unsafe.SliceData(v.bytes()[lo*v.dtype.Size() : hi*v.dtype.Size()]))
	} else {
		v.addr += uintptr(lo * v.dtype.Size())
	}
	v.n, v.arena = hi-lo, v.arena+lo
	return v
}

// Len is the number of elements.
func (v Vector) Len() int { return v.n }

// Bytes is the number of bytes.
func (v Vector) Bytes() int { return v.n * v.dtype.Size() }

// DType is the type of the elements.
func (v Vector) DType() DType { return v.dtype }

// Arena is the offset given by At.
func (v Vector) Arena() int { return v.arena }

// Host is the vector's memory as bytes in the machine's byte order, and
// whether the CPU can address it.
func (v Vector) Host() (b []byte, ok bool) {
	if v.device >= 0 && v.dtype != 0 {
		return nil, false
	}
	return v.bytes(), true
}

// Device is the device's index and the address on it, and whether the vector
// lies in device memory.
func (v Vector) Device() (device int, addr uintptr, ok bool) {
	return v.device, v.addr, v.device >= 0 && v.dtype != 0
}

// String is for error messages, e.g. "float32[1000] at 4096".
func (v Vector) String() string {
	where := ""
	if v.device >= 0 {
		where = fmt.Sprintf(" on device %d", v.device)
	}
	if v.arena != 0 {
		where += fmt.Sprintf(" at %d", v.arena)
	}
	return fmt.Sprintf("%v[%d]%s", v.dtype, v.n, where)
}

func (v Vector) bytes() []byte {
	return unsafe.Slice((*byte)(v.host), v.n*v.dtype.Size())
}

// onHost reports whether it is a Vector in host memory, and not the zero one.
func (v *Vector) onHost() bool { return v.device < 0 && v.dtype.Size() != 0 }

// set is *v = *w, field by field: see Operation.
func (v *Vector) set(w *Vector) {
	v.host, v.addr, v.n, v.arena, v.device, v.dtype = w.host, w.addr, w.n, w.arena, w.device, w.dtype
}

// same reports whether two vectors are the same memory.
func (v *Vector) same(w *Vector) bool {
	return v.host == w.host && v.addr == w.addr && v.device == w.device && v.n == w.n
}
