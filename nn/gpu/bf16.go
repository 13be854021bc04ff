package gpu

import (
	"fmt"
	"slices"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn"
)

// leastForBF16 is the first major compute capability with bfloat16 products.
const leastForBF16 = 8

// A rounded is the bfloat16 copy of a factor that has not changed since.
type rounded struct {
	from, to cuda.Ptr // the factor is at [from, to)
	at       cuda.Ptr // of the copy
}

// CheckBF16 returns nil if a device has bfloat16 products, and otherwise an error
// that says what it lacks.
func CheckBF16(info cuda.Info) error {
	if info.Major >= leastForBF16 {
		return nil
	}
	return fmt.Errorf("products in bfloat16 need compute capability %d.0, and this GPU has %d.%d: use float32 or TF32", leastForBF16, info.Major, info.Minor)
}

// factor returns a factor's address for a product. With Options.BF16 that is a 16-bit
// copy, which other products share until the factor changes or Recycle frees the copy.
func (b *Backend) factor(v nn.Buffer) cuda.Ptr {
	from := b.address(v)
	if !b.options.BF16 || from == 0 {
		return from
	}
	to := from + cuda.Ptr(v.Len()*elementBytes)
	for _, r := range b.rounded {
		if r.from == from && r.to == to {
			return r.at
		}
	}
	half := b.address(b.Temp((v.Len() + 1) / 2))
	b.launch("to_bf16", v.Len(), half.Arg(), from.Arg(), count(v.Len()))
	if half != 0 && b.failure == nil {
		b.rounded = append(b.rounded, rounded{from, to, half})
	}
	return half
}

// changes forgets the copies of factors that overlap these bytes.
func (b *Backend) changes(at cuda.Ptr, bytes int) {
	if len(b.rounded) > 0 {
		b.rounded = slices.DeleteFunc(b.rounded, func(r rounded) bool { return r.from < at+cuda.Ptr(bytes) && at < r.to })
	}
}

// changesAll forgets all copies. That is needed when their memory is recycled, and
// around recordings: a recording must not rely on copies made before it, and later
// work must not rely on copies made in it.
func (b *Backend) changesAll() { b.rounded = b.rounded[:0] }

// number returns the element type of products.
func (b *Backend) number() cuda.Number {
	if b.options.BF16 {
		return cuda.BFloat16Factors
	}
	return cuda.Float32s
}
