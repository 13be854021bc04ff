package trainer

import (
	"fmt"
	"math"
	"strings"
	"unsafe"

	"github.com/ringtrain/ringtrain/collective/fold"
	"github.com/ringtrain/ringtrain/nn"
)

// A NotFiniteError says that the loss or a gradient of some ranks has become
// infinite or not a number.
type NotFiniteError struct {
	What      string // "loss of", "gradient of", "summed gradient of", "test loss after"
	Step      int    // counts from 1
	Parameter string // where the gradient is not finite, of the first of Ranks; "" if it is
	Value     string // the parameter whose values are not finite; "" if all are
	Ranks     []int
	Names     []string
}

// Error names the step, the ranks and the parameter.
func (e *NotFiniteError) Error() string {
	where := ""
	if e.Parameter != "" {
		where = ", first in the gradient of " + e.Parameter
	}
	if e.Value != "" {
		where += ", nor are the values of " + e.Value
	}
	return fmt.Sprintf("trainer: the %s step %d is not finite on %s%s: lower the learn rate, or look at the data of that step",
		e.What, e.Step, strings.Join(e.Names, ", "), where)
}

// finite reports whether no element is infinite or not a number. Nor is then a sum
// in which one is, so blocks are added up and their sum is looked at. Only if that
// is not finite, which finite elements can make it, all must be looked at.
func finite(x []float32) bool {
	var sum [2048]float32
	if len(x) < 4*len(sum) {
		return allAreFinite(x)
	}
	copy(sum[:], x)
	for lo := len(sum); lo < len(x); lo += len(sum) {
		block := x[lo:min(lo+len(sum), len(x))]
		fold.Into(fold.Sum, sum[:len(block)], sum[:len(block)], block)
	}
	return allAreFinite(sum[:]) || allAreFinite(x)
}

// allAreFinite looks at two elements at once: only an exponent of ones carries
// into the sign.
func allAreFinite(x []float32) bool {
	const exponent, carry = 0x7f800000_7f800000, 0x00800000_00800000
	pairs := unsafe.Slice((*[4]uint64)(unsafe.Pointer(unsafe.SliceData(x))), len(x)/8)
	var a, b uint64
	for i := range pairs {
		p := &pairs[i]
		a |= (p[0]&exponent + carry) | (p[1]&exponent + carry)
		b |= (p[2]&exponent + carry) | (p[3]&exponent + carry)
	}
	for _, y := range x[len(x)/8*8:] {
		a |= uint64(math.Float32bits(y))&exponent + carry
	}
	return (a|b)&0x80000000_80000000 == 0
}

// notFinite is 1 + the index of the parameter with a gradient that is not
// finite, of elements lo to hi of the arena, or 0. Of several it is the last:
// the backward pass met it first.
func notFinite(p *nn.Params, lo, hi int) int64 { return notFiniteIn(p.Grads.Float32s(), p, lo, hi) }

// notFiniteIn is notFinite of a copy of the arena.
func notFiniteIn(grads []float32, p *nn.Params, lo, hi int) int64 {
	if finite(grads[lo:hi]) {
		return 0
	}
	for i := len(p.List) - 1; i >= 0; i-- {
		q := p.List[i]
		from, to := max(lo, q.Offset), min(hi, q.Offset+q.Grads.Len())
		if from < to && !finite(grads[from:to]) {
			return int64(i + 1)
		}
	}
	return 0 // in a gap, which nothing reads
}

// brokenValue is the name of the first parameter with a value that is not
// finite, or "". Values in device memory are not looked at.
func brokenValue(p *nn.Params) string {
	for _, q := range p.List {
		if !finite(q.Values.Float32s()) {
			return q.Name
		}
	}
	return ""
}

// parameterName is the name of what notFinite found.
func parameterName(p *nn.Params, found int64) string {
	if found < 1 || int(found) > len(p.List) {
		return ""
	}
	return p.List[found-1].Name
}
