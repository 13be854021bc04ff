package trainer

import (
	"fmt"
	"math"

	"github.com/ringtrain/ringtrain/collective/fold"
	"github.com/ringtrain/ringtrain/nn"
)

// A rowPiece holds the rows that a rank has touched in a table, until they are folded.
type rowPiece struct {
	numbers []float32 // of the rows, ascending; each is a uint32 in the bits of a float32
	values  []float32 // of the rows, one after the other
}

// packRows appends the touched rows of a table to b: their numbers, then their gradients.
func packRows(b []float32, q *nn.Param) []float32 {
	grads, width := q.Grads.Float32s(), widthOf(q)
	for row := range q.Touched.All() {
		b = append(b, math.Float32frombits(uint32(row)))
	}
	for row := range q.Touched.All() {
		b = append(b, grads[row*width:(row+1)*width]...)
	}
	return b
}

// next returns the number of the first row, and whether there is one.
func (p *rowPiece) next() (row int, ok bool) {
	if len(p.numbers) == 0 {
		return 0, false
	}
	return int(math.Float32bits(p.numbers[0])), true
}

// foldRows sets the gradients of a table to the sums of the pieces of all ranks, and uses
// them up. A row that no rank has touched does not change: it is 0 on all ranks. The bits
// are those of an AllReduce of the arena.
func foldRows(arena []float32, q *nn.Param, pieces []rowPiece) error {
	width := widthOf(q)
	for least := 0; ; least++ {
		row, ranks, first := lowestRow(pieces)
		switch {
		case ranks == 0:
			return nil
		case row < least || row >= q.Shape[0]:
			return fmt.Errorf("trainer: rank %d sent row %d of %s, but must send rows in order, up to %d: run the same version on every machine", first, row, q.Name, q.Shape[0]-1)
		}
		least = row
		foldRow(arena, q, row, pieces, ranks == len(pieces))
		for r := range pieces {
			if p := &pieces[r]; p.begins(row) {
				p.numbers, p.values = p.numbers[1:], p.values[width:]
			}
		}
	}
}

// lowestRow returns the lowest of the rows that pieces begin with, the number of ranks that
// have it, and the first of them.
func lowestRow(pieces []rowPiece) (row, ranks, first int) {
	for r := range pieces {
		switch next, ok := pieces[r].next(); {
		case !ok || ranks > 0 && next > row:
		case ranks > 0 && next == row:
			ranks++
		default:
			row, ranks, first = next, 1, r
		}
	}
	return row, ranks, first
}

// begins reports whether a row comes next.
func (p *rowPiece) begins(row int) bool {
	next, ok := p.next()
	return ok && next == row
}

// foldRow sets a row that pieces begin with to its sum, in ring order. With all, every rank
// has it, and the sum begins with the row of the first. Otherwise it begins with +0, which
// stands for the ranks that have not touched the row: wherever a +0 is added, it only makes
// a sum of -0 a +0.
func foldRow(arena []float32, q *nn.Param, row int, pieces []rowPiece, all bool) {
	width := widthOf(q)
	at := q.Offset + row*width
	for lo := at; lo < at+width; {
		block := lo / ringBlock
		hi := min((block+1)*ringBlock, at+width)
		dst := arena[lo:hi]
		clear(dst)
		for i := range pieces {
			p := &pieces[(block+i)%len(pieces)]
			switch {
			case !p.begins(row):
			case i == 0 && all:
				copy(dst, p.values[lo-at:hi-at])
			default:
				fold.Into(fold.Sum, dst, dst, p.values[lo-at:hi-at])
			}
		}
		lo = hi
	}
}
