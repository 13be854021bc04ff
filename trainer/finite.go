package trainer

import (
	"fmt"
	"math"
	"strings"
	"unsafe"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/fold"
	"github.com/ringtrain/ringtrain/nn"
)

// A NotFiniteError reports that the loss or a gradient of some ranks is infinite or
// not a number.
type NotFiniteError struct {
	What      string // "loss of", "gradient of", "summed gradient of", "test loss after"
	Step      int    // counts from 1
	Parameter string // the first of Ranks has a gradient of it that is not finite; "" if all are finite
	Value     string // a parameter with values that are not finite; "" if all are finite
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

// sumNotFinite says that a sum over all ranks is not finite. step counts from 0.
func sumNotFinite(v collective.View, step int, parameter string) error {
	all := ranksOf(v)
	return &NotFiniteError{What: "summed gradient of", Step: step + 1, Parameter: parameter, Ranks: all, Names: names(v, all)}
}

// finite reports whether all elements are finite. An element that is not makes every
// sum with it not finite, so finite adds blocks and checks only their sum. Finite
// elements can overflow; then it checks each.
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

// allAreFinite checks two elements at once: adding 1 to the exponent carries into the
// sign bit only if the exponent is all ones.
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

// notFinite returns 1 + the index of the parameter that has a gradient between
// elements lo and hi that is not finite, or 0. Of several it returns the last, which
// the backward pass computed first.
func notFinite(p *nn.Params, lo, hi int) int64 { return notFiniteIn(p.Grads.Float32s(), p, lo, hi) }

// NotFinite returns 1 + the index of a parameter in p.List whose gradient is not finite,
// or 0. The gradients are in host memory.
func NotFinite(p *nn.Params) int64 { return notFinite(p, 0, p.Grads.Len()) }

// notFiniteIn is notFinite for a copy of the arena.
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
	return 0 // in a gap between parameters, which nothing reads
}

// brokenValue returns the name of the first parameter with a value that is not
// finite, or "". It does not look at device memory.
func brokenValue(p *nn.Params) string {
	for _, q := range p.List {
		if !finite(q.Values.Float32s()) {
			return q.Name
		}
	}
	return ""
}

// parameterName returns the name of the parameter that notFinite found.
func parameterName(p *nn.Params, found int64) string {
	if found < 1 || int(found) > len(p.List) {
		return ""
	}
	return p.List[found-1].Name
}
