package trainer

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
)

// A Compression makes gradients smaller before they leave a rank. The rank adds what
// was lost to its gradients of the next step (error feedback, Seide et al., 2014), so
// it arrives late instead of never. The zero value sends gradients as they are.
//
// It applies to gradients summed over a rank's rows, before the division by the rows
// of all ranks.
type Compression struct {
	Form Form
	Keep float64 // for TopK: the share of elements to send, more than 0 and at most 1
}

// Form is a way to encode gradients.
type Form uint8

// The forms.
const (
	// Exact is float32. Nothing is lost.
	Exact Form = iota
	// BFloat16 and Float16 round each element to the nearest in 16 bits. Ranks sum in
	// float32 and round the sum once more; no rank keeps what that loses. Elements are
	// clipped to the greatest number divided by the number of ranks, so that no sum
	// overflows.
	BFloat16
	Float16
	// Int8 is a whole number from -127 to 127 per element, times a scale per block: the
	// block's greatest magnitude / 127. A block has 256 elements of one parameter; the
	// last block of a parameter may have fewer.
	Int8
	// TopK sends the elements of greatest magnitude in each bucket, exactly, with their
	// indices. Of equal ones it sends those with lower indices.
	TopK
)

// ParseCompression parses "none", "bf16", "fp16", "int8" or "topk:R", where R is
// Keep.
func ParseCompression(text string) (Compression, error) {
	for form, name := range formNames {
		if text == name && Form(form) != TopK {
			return Compression{Form: Form(form)}, nil
		}
	}
	if share, ok := strings.CutPrefix(text, "topk:"); ok {
		keep, err := strconv.ParseFloat(share, 64)
		c := Compression{Form: TopK, Keep: keep}
		if err != nil || c.Check() != nil {
			return Compression{}, fmt.Errorf("%.40s: the share of the elements to send must be more than 0 and at most 1, as in topk:0.01", text)
		}
		return c, nil
	}
	return Compression{}, fmt.Errorf("unknown compression %.40q: use none, bf16, fp16, int8, or topk:R, where R is the share of the elements to send", text)
}

var formNames = [...]string{Exact: "none", BFloat16: "bf16", Float16: "fp16", Int8: "int8", TopK: "topk"}

// String returns the form that ParseCompression parses.
func (c Compression) String() string {
	switch {
	case int(c.Form) >= len(formNames):
		return fmt.Sprintf("Compression(%d)", c.Form)
	case c.Form == TopK:
		return "topk:" + strconv.FormatFloat(c.Keep, 'g', -1, 64)
	}
	return formNames[c.Form]
}

// Check returns an error unless c is a Compression that ParseCompression can return.
func (c Compression) Check() error {
	switch {
	case int(c.Form) >= len(formNames):
		return fmt.Errorf("trainer: there is no compression of form %d; use the constants, or ParseCompression", c.Form)
	case c.Form == TopK && !(c.Keep > 0 && c.Keep <= 1):
		return fmt.Errorf("trainer: compression %v: the share of the elements to send must be more than 0 and at most 1", c)
	}
	return nil
}

// SumType returns the type in which a group sums gradients. ok is false for Int8 and
// TopK: every rank gathers those of all ranks and sums them itself.
func (c Compression) SumType() (t collective.DType, ok bool) {
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

// Packed returns the size in bytes of one rank's packed gradients, if they leave in
// buckets of at least this many bytes of float32.
func (c Compression) Packed(p *nn.Params, bucket int) int {
	n, hi := 0, p.Grads.Len()
	for _, lo := range cuts(p, bucket) {
		n += c.packed(p, lo, hi)
		hi = lo
	}
	return n
}

// packed is the packed size in bytes of elements lo to hi of the arena, which are
// whole parameters.
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
	t, _ := c.SumType()
	return t.Size() * (hi - lo)
}

// kept is how many of n elements TopK sends.
func (c Compression) kept(n int) int {
	return min(n, max(1, int(math.Ceil(c.Keep*float64(n)))))
}

// within returns the parameters between elements lo and hi of the arena.
func within(p *nn.Params, lo, hi int) []*nn.Param {
	var from, to int
	for from < len(p.List) && p.List[from].Offset < lo {
		from++
	}
	for to = from; to < len(p.List) && p.List[to].Offset < hi; to++ {
	}
	return p.List[from:to]
}
