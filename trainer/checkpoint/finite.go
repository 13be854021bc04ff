package checkpoint

import (
	"fmt"
	"math"
)

// CheckFinite returns an error that names the first tensor with a NaN or an infinity.
// Training cannot continue from such weights, and their predictions are meaningless.
func (f File) CheckFinite() error {
	for _, n := range f.Tensors {
		vals, _, err := values(n.Tensor)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", n.Name, err)
		}
		at := -1
		switch v := vals.(type) {
		case []float32:
			at = notFinite(v)
		case []float64:
			at = notFinite(v)
		}
		if at >= 0 {
			return fmt.Errorf("tensor %q is not finite, first at element %d", n.Name, at)
		}
	}
	return nil
}

// notFinite returns the index of the first element that is infinite or NaN, or -1.
func notFinite[T float32 | float64](v []T) int {
	for i, x := range v {
		if y := float64(x); math.IsInf(y, 0) || math.IsNaN(y) {
			return i
		}
	}
	return -1
}
