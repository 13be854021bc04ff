package gpu

import (
	"fmt"
	"slices"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn"
)

// leastForBF16 is the first compute capability with products of bfloat16.
const leastForBF16 = 8

// A rounded is a factor of products in bfloat16, as it was when it was rounded.
type rounded struct {
	from, to cuda.Ptr // where the factor lies, and where it ends
	at       cuda.Ptr // of the copy
}

// CheckBF16 is why a device has no products of bfloat16; nil if it has.
func CheckBF16(info cuda.Info) error {
	if info.Major >= leastForBF16 {
		return nil
	}
	return fmt.Errorf("products in bfloat16 need compute capability %d.0, and this GPU has %d.%d: leave it at float32, or TF32", leastForBF16, info.Major, info.Minor)
}

// factor is where a product finds a factor: where it lies, or with Options.BF16 in
// a copy of 16 bits, which other products take too until the factor changes or
// Recycle ends its life.
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

// changes forgets the copies of all that lies in these bytes.
func (b *Backend) changes(at cuda.Ptr, bytes int) {
	if len(b.rounded) > 0 {
		b.rounded = slices.DeleteFunc(b.rounded, func(r rounded) bool { return r.from < at+cuda.Ptr(bytes) && at < r.to })
	}
}

// changesAll forgets all copies: they end with the memory they are in, and
// neither a recording nor what comes after it may count on those of others.
func (b *Backend) changesAll() { b.rounded = b.rounded[:0] }

// number is the type of products.
func (b *Backend) number() cuda.Number {
	if b.options.BF16 {
		return cuda.BFloat16Factors
	}
	return cuda.Float32s
}
