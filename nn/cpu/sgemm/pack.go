package sgemm

// packRows packs a tile of A: the elements of its rows for the first step of the inner
// dimension, then those for the next.
func (x *blocked) packRows(to []float32, i, rows, from, block int) {
	x.pack(to, rows, panelOf{x.a, i, rows, x.M, !x.a.Transposed}, from, block)
}

// packColumns packs a panel of B like packRows, with whole registers per step.
func (x *blocked) packColumns(to []float32, j, columns, from, block int) {
	lanes := x.kernels.lanes
	x.pack(to, (columns+lanes-1)/lanes*lanes, panelOf{x.b, j, columns, x.N, x.b.Transposed}, from, block)
}

// A panelOf is some rows of A or columns of B.
type panelOf struct {
	Matrix
	first, count int
	limit        int  // how many there are in all
	across       bool // the matrix has the inner dimension along its rows
}

// pack writes the elements of p in steps of pitch elements. Kernels write whole registers.
// What they write beyond the count is overwritten by what belongs there: the last register
// of a step comes first, and so does the first step.
func (x *blocked) pack(to []float32, pitch int, p panelOf, from, block int) {
	lanes := x.kernels.lanes
	s := &x.strip
	s.stepTo = bytes(pitch)
	for at := (p.count - 1) / lanes * lanes; at >= 0; at -= lanes {
		count := min(lanes, p.count-at)
		s.to = &to[at]
		if !p.across {
			s.from = &p.Data[from*p.Stride+p.first+at]
			s.stepFrom, s.count = bytes(p.Stride), block
			s.mask, s.lanes = masks(count)
			x.kernels.copy(s.words())
			continue
		}
		source, stride := p.Data[(p.first+at)*p.Stride+from:], p.Stride
		if p.first+at+lanes > p.limit {
			source, stride = x.shorten(source, stride, count, block), block
		}
		if whole := block &^ 3; whole > 0 {
			s.from, s.stepFrom, s.count = &source[0], bytes(stride), whole
			x.kernels.transpose(s.words())
		}
		for k := block &^ 3; k < block; k++ {
			for r := range count {
				to[k*pitch+at+r] = source[r*stride+k]
			}
		}
	}
}

// shorten copies the first elements of count rows to rows of a matrix that has enough rows
// for a transpose.
func (x *blocked) shorten(source []float32, stride, count, block int) []float32 {
	reserve(&x.edge, x.kernels.lanes*block)
	for r := range count {
		copy(x.edge[r*block:][:block], source[r*stride:])
	}
	return x.edge
}
