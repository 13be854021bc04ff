package nn

import (
	"fmt"
	"unsafe"
)

// A DType is the element type of a [Buffer].
type DType uint8

// The element types a Buffer can hold. Both take four bytes.
const (
	Float32 DType = iota
	Int32
)

// String returns the lower-case Go name of the type.
func (t DType) String() string {
	switch t {
	case Float32:
		return "float32"
	case Int32:
		return "int32"
	}
	return fmt.Sprintf("DType(%d)", uint8(t))
}

// elementSize is the size in bytes of every DType.
const elementSize = 4

// A Buffer is a contiguous run of elements of one type in host or device memory. It does
// not own the memory. A Buffer is a value: copies refer to the same memory, which lives
// as long as its owner (a [Backend], or the slice given to [Host]) keeps it. The zero
// Buffer is an empty run of float32.
type Buffer struct {
	floats []float32
	ints   []int32
	addr   uintptr
	n      int
	device int
	dtype  DType
	remote bool // in device memory
}

// Host returns a Buffer that aliases v but cannot grow into v's spare capacity.
func Host(v []float32) Buffer { return Buffer{floats: v[:len(v):len(v)], n: len(v), dtype: Float32} }

// HostInts returns a Buffer that aliases v but cannot grow into v's spare capacity.
func HostInts(v []int32) Buffer { return Buffer{ints: v[:len(v):len(v)], n: len(v), dtype: Int32} }

// OnDevice returns a Buffer of n elements of type t at addr, an address in the memory of
// the device with the given ordinal. The caller keeps the memory alive while the Buffer
// is in use.
func OnDevice(device int, addr uintptr, n int, t DType) Buffer {
	return Buffer{addr: addr, n: n, device: device, dtype: t, remote: true}
}

// Len returns the number of elements.
func (b Buffer) Len() int { return b.n }

// DType returns the element type.
func (b Buffer) DType() DType { return b.dtype }

// Float32s returns the elements themselves, not a copy. It returns nil unless they are
// float32 in host memory.
func (b Buffer) Float32s() []float32 { return b.floats }

// Int32s returns the elements themselves, not a copy. It returns nil unless they are
// int32 in host memory.
func (b Buffer) Int32s() []int32 { return b.ints }

// Slice returns elements lo to hi, excluding hi. Like a slice expression, it panics
// unless 0 <= lo <= hi <= Len.
func (b Buffer) Slice(lo, hi int) Buffer {
	if lo < 0 || hi < lo || hi > b.n {
		panic(fmt.Sprintf("nn: Buffer.Slice(%d, %d) of %d elements", lo, hi, b.n))
	}
	s := b
	s.n = hi - lo
	switch {
	case b.remote:
		s.addr = b.addr + uintptr(lo)*elementSize
	case b.dtype == Int32:
		s.ints = b.ints[lo:hi:hi]
	default:
		s.floats = b.floats[lo:hi:hi]
	}
	return s
}

// Device returns the device and address of the elements if they are in device memory. ok
// is false for host memory.
func (b Buffer) Device() (device int, addr uintptr, ok bool) { return b.device, b.addr, b.remote }

// sameStart reports whether two Buffers begin at the same element of float32 in host memory.
func (b Buffer) sameStart(c Buffer) bool {
	return unsafe.SliceData(b.floats) == unsafe.SliceData(c.floats)
}
