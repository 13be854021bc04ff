package collective

import (
	"unsafe"

	"github.com/ringtrain/ringtrain/collective/fold"
)

// scaleBytes multiplies floats by 1/size.
func scaleBytes(t DType, b []byte, size int) {
	switch t {
	case Float32:
		fold.Scale(elements[float32](b), 1/float32(size))
	case Float64:
		fold.Scale(elements[float64](b), 1/float64(size))
	}
}

// foldBytes is fold.Into for elements whose type is known only at run time.
// Callers use it only for the types below; 16-bit floats are folded by Chain.
func foldBytes(t DType, op Op, dst, a, b []byte) {
	switch t {
	case Float32:
		fold.Into(op.step(), elements[float32](dst), elements[float32](a), elements[float32](b))
	case Float64:
		fold.Into(op.step(), elements[float64](dst), elements[float64](a), elements[float64](b))
	case Int32:
		fold.Into(op.step(), elements[int32](dst), elements[int32](a), elements[int32](b))
	case Int64:
		fold.Into(op.step(), elements[int64](dst), elements[int64](a), elements[int64](b))
	case Uint8:
		fold.Into(op.step(), dst, a, b)
	}
}

// elements returns bytes as elements. They are aligned, because vectors are
// slices of elements, scratch memory consists of words, and blocks hold whole
// elements.
func elements[T fold.Number | uint16](b []byte) []T {
	var one T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(one)))
}

func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}
