package collective

import (
	"fmt"

	"github.com/ringtrain/ringtrain/collective/fold"
)

// Round16 sets dst[i] to what is nearest to src[i] in 16 bits of type t, Float16
// or BFloat16, for a Vector of [Of16]; of two that are equally near, to the even
// one. What is beyond the greatest number is infinite, and a NaN stays one. The
// two have the same length and do not overlap. Other types are an error.
func Round16(dst []uint16, src []float32, t DType) error {
	f, err := format16(t, len(dst), len(src))
	if err == nil {
		fold.Round(dst, src, f)
	}
	return err
}

// Widen16 sets dst[i] to the float32 that src[i] is as a t, Float16 or BFloat16,
// exactly. The two have the same length and do not overlap. Other types are an
// error.
func Widen16(dst []float32, src []uint16, t DType) error {
	f, err := format16(t, len(dst), len(src))
	if err == nil {
		fold.Widen(dst, src, f)
	}
	return err
}

// format16 is how t holds floats, if lengths fit.
func format16(t DType, dst, src int) (fold.Format, error) {
	switch {
	case dst != src:
		return 0, fmt.Errorf("collective: %d elements do not fit %d: give slices of one length", src, dst)
	case t == Float16:
		return fold.Half, nil
	case t == BFloat16:
		return fold.Brain, nil
	}
	return 0, fmt.Errorf("collective: %v is no 16-bit float: use float16 or bfloat16", t)
}
