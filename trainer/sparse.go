package trainer

import (
	"fmt"
	"slices"

	"github.com/ringtrain/ringtrain/nn"
)

// Sparse says how the gradients of tables leave a rank: those of parameters with
// nn.Param.Touched, of which a step touches only some rows. Every choice gives the same
// bits.
type Sparse uint8

// The choices.
const (
	// SparseOff sends all gradients whole.
	SparseOff Sparse = iota
	// SparseAuto sends only the touched rows of a table in steps in which that is fewer
	// bytes; see FewerAsRows. A table of less than 64 KiB leaves whole: its latency decides.
	SparseAuto
	// SparseOn always sends only the touched rows.
	SparseOn
)

var sparseNames = [...]string{SparseOff: "off", SparseAuto: "auto", SparseOn: "on"}

// ParseSparse parses "auto", "on" or "off".
func ParseSparse(text string) (Sparse, error) {
	if i := slices.Index(sparseNames[:], text); i >= 0 {
		return Sparse(i), nil
	}
	return 0, fmt.Errorf("must be auto, on or off, not %q", text)
}

// String returns the name that ParseSparse parses.
func (s Sparse) String() string {
	if int(s) >= len(sparseNames) {
		return fmt.Sprintf("Sparse(%d)", uint8(s))
	}
	return sparseNames[s]
}

// FewerAsRows reports whether ranks send fewer bytes for the gradient of a table (rows,
// width) if each sends its rows to all others, instead of a ring allreduce of the table.
// touched is the sum over the ranks of the rows that each has touched. Of the rows, each
// with its number, a rank forwards those of all ranks but one: (N-1)/N of touched. Of the
// table it sends 2(N-1)/N.
func FewerAsRows(touched, rows, width int) bool {
	return touched*(1+width) < 2*rows*width
}

// applies reports whether the gradient of a parameter may leave as rows.
func (s Sparse) applies(q *nn.Param) bool {
	return q.Touched != nil && (s == SparseOn || s == SparseAuto && 4*q.Grads.Len() >= leastBucket)
}

// Tables returns the number of parameters whose gradients can leave as rows.
func (s Sparse) Tables(p *nn.Params) int {
	n := 0
	for _, q := range p.List {
		if s.applies(q) {
			n++
		}
	}
	return n
}

// Buckets is the function Buckets, with each of these parameters in a bucket of its own.
func (s Sparse) Buckets(p *nn.Params, bytes int) []int {
	at, _ := cutsAround(p, bytes, s.applies)
	return lengths(at, p.Grads.Len())
}

// widthOf returns the number of elements in a row of a table.
func widthOf(q *nn.Param) int { return q.Grads.Len() / q.Shape[0] }
