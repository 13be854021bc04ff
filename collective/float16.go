package collective

import (
	"fmt"
	"unsafe"

	"github.com/ringtrain/ringtrain/collective/fold"
)

// Round16 rounds src to 16-bit floats of type t, Float16 or BFloat16, for a
// Vector made by [Of16]. It rounds to nearest, ties to even. Values out of
// range become infinite, and a NaN remains a NaN. dst and src have the same
// length and do not overlap. Another type is an error.
func Round16(dst []uint16, src []float32, t DType) error {
	f, err := format16(t, len(dst), len(src))
	if err == nil {
		fold.Round(dst, src, f)
	}
	return err
}

// Widen16 converts 16-bit floats of type t, Float16 or BFloat16, to float32,
// exactly. dst and src have the same length and do not overlap. Another type is
// an error.
func Widen16(dst []float32, src []uint16, t DType) error {
	f, err := format16(t, len(dst), len(src))
	if err == nil {
		fold.Widen(dst, src, f)
	}
	return err
}

// Bits16 returns the memory of a Vector of 16-bit floats as their bits, as [Of16] takes them. It is
// nil if the elements have another type or lie in device memory.
func Bits16(v Vector) []uint16 {
	if v.dtype != Float16 && v.dtype != BFloat16 || v.device >= 0 {
		return nil
	}
	return unsafe.Slice((*uint16)(v.host), v.n)
}

// format16 returns the format of t, or an error if the lengths differ.
func format16(t DType, dst, src int) (fold.Format, error) {
	switch {
	case dst != src:
		return 0, fmt.Errorf("collective: source has %d elements, destination %d: pass slices of the same length", src, dst)
	case t == Float16:
		return fold.Half, nil
	case t == BFloat16:
		return fold.Brain, nil
	}
	return 0, fmt.Errorf("collective: %v is not a 16-bit float: use float16 or bfloat16", t)
}
