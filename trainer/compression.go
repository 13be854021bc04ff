package trainer

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
)

// A Compression is how gradients become smaller before they leave a rank. What
// is lost is kept by the rank and added to its gradients of the next step (error
// feedback), so it arrives late and not never. The zero value leaves gradients as
// they are.
//
// It is of gradients that are sums over rows, as they leave: the division by all
// rows comes after.
type Compression struct {
	Form Form
	Keep float64 // of TopK: the share of elements that leave, more than 0 and at most 1
}

// Form says what gradients become.
type Form uint8

// The forms.
const (
	// Exact is float32, nothing lost.
	Exact Form = iota
	// BFloat16 and Float16 round each element to nearest in 16 bits. Gradients
	// are added in float32 and the sum is rounded once more, which no rank keeps. Elements
	// beyond the greatest number, divided by the number of ranks, are cut to it, so that no sum
	// overflows.
	BFloat16
	Float16
	// Int8 is a whole number from -127 to 127 for each element, times a scale of
	// its block, which is the block's greatest magnitude / 127. Blocks have 256
	// elements of one parameter, the last of it the rest.
	Int8
	// TopK is the elements of greatest magnitude of each bucket with their
	// places, exact; of equal ones those at lower places.
	TopK
)

// ParseCompression reads "none", "bf16", "fp16", "int8" or "topk:R" with R the
// share that is kept.
func ParseCompression(text string) (Compression, error) {
	for form, name := range formNames {
		if text == name && Form(form) != TopK {
			return Compression{Form: Form(form)}, nil
		}
	}
	if share, ok := strings.CutPrefix(text, "topk:"); ok {
		keep, err := strconv.ParseFloat(share, 64)
		if err != nil || !(keep > 0 && keep <= 1) {
			return Compression{}, fmt.Errorf("%.40s: the share that top-k keeps must be more than 0 and at most 1, as in topk:0.01", text)
		}
		return Compression{Form: TopK, Keep: keep}, nil
	}
	return Compression{}, fmt.Errorf("%.40q is no compression: use none, bf16, fp16, int8, or topk:R with the share R that is kept", text)
}

var formNames = [...]string{Exact: "none", BFloat16: "bf16", Float16: "fp16", Int8: "int8", TopK: "topk"}

// String is what ParseCompression reads.
func (c Compression) String() string {
	switch {
	case int(c.Form) >= len(formNames):
		return fmt.Sprintf("Compression(%d)", c.Form)
	case c.Form == TopK:
		return "topk:" + strconv.FormatFloat(c.Keep, 'g', -1, 64)
	}
	return formNames[c.Form]
}

// Sums is the type in which a group adds up gradients, and whether it does: Int8
// and TopK are gathered by all ranks, and each adds them up for itself.
func (c Compression) Sums() (t collective.DType, ok bool) {
	switch c.Form {
	case Exact:
		return collective.Float32, true
	case BFloat16:
		return collective.BFloat16, true
	case Float16:
		return collective.Float16, true
	}
	return collective.Uint8, false
}

// Packed is the bytes that the gradients of one rank become, if they leave in
// buckets of at least so many bytes of float32.
func (c Compression) Packed(p *nn.Params, bucket int) int {
	n, hi := 0, p.Grads.Len()
	for _, lo := range cuts(p, bucket) {
		n += c.packed(p, lo, hi)
		hi = lo
	}
	return n
}

// packed is the bytes that elements lo to hi of the arena become, which are whole
// parameters.
func (c Compression) packed(p *nn.Params, lo, hi int) int {
	switch c.Form {
	case Int8:
		n := 0
		for _, q := range within(p, lo, hi) {
			n += quantizedLen(q.Grads.Len())
		}
		return n
	case TopK:
		return c.kept(hi-lo) * entryLen
	}
	t, _ := c.Sums()
	return t.Size() * (hi - lo)
}

// kept is how many of n elements leave.
func (c Compression) kept(n int) int {
	return min(n, max(1, int(math.Ceil(c.Keep*float64(n)))))
}

// within is the parameters in elements lo to hi of the arena.
func within(p *nn.Params, lo, hi int) []*nn.Param {
	var from, to int
	for from < len(p.List) && p.List[from].Offset < lo {
		from++
	}
	for to = from; to < len(p.List) && p.List[to].Offset < hi; to++ {
	}
	return p.List[from:to]
}
