package nn

// ExpandWindow joins each row with its neighbours: row i of the result has rows i-Size to
// i+Size, one after the other, and zeros for rows before the first and after the last. It is
// Thinc's expand_window.v1, and with Maxout a convolution over tokens. Rows are the tokens of
// all documents of a batch, so put it into [Padded] to keep documents apart.
type ExpandWindow struct {
	// Size is the number of rows on each side.
	Size int

	width  int
	wantDX bool
}

// Init declares no parameters.
func (l *ExpandWindow) Init(in, out []int, b *Builder) ([]int, error) {
	if l.width != 0 {
		return nil, usedLayer(b)
	}
	if err := b.tokens("ExpandWindow", in); err != nil {
		return nil, err
	}
	if l.Size < 1 {
		return nil, b.errorf("Size must be at least 1, not %d", l.Size)
	}
	l.width, l.wantDX = product(in), b.NeedsInputGradient()
	return outShape([]int{(2*l.Size + 1) * l.width}, out, b)
}

// Forward takes rows of nI and returns rows of (2·Size+1)·nI.
func (l *ExpandWindow) Forward(p *Pass, x Tensor) (Tensor, Backprop) {
	be, n, wide := p.Backend, x.Rows(), (2*l.Size+1)*l.width
	y := Tensor{Shape: []int{n, wide}, Data: be.Temp(n * wide), Lengths: x.Lengths}
	edge := min(l.Size, n) * wide
	be.Zero(y.Data.Slice(0, edge))
	be.Zero(y.Data.Slice(n*wide-edge, n*wide))
	l.each(n, func(at, lo, hi, from int) {
		be.Insert(y.Data.Slice(lo*wide, hi*wide), l.rows(x.Data, from, hi-lo), wide, at, l.width)
	})
	return y, func(dy Tensor) Tensor {
		if !l.wantDX {
			return Tensor{}
		}
		dx, part := be.Temp(n*l.width), be.Temp(n*l.width)
		be.Zero(dx)
		l.each(n, func(at, lo, hi, from int) {
			some := l.rows(part, 0, hi-lo)
			be.Extract(some, dy.Data.Slice(lo*wide, hi*wide), wide, at, l.width)
			sum := l.rows(dx, from, hi-lo)
			be.Add(sum, sum, some)
		})
		p.release(part)
		return Tensor{Shape: x.Shape, Data: dx, Lengths: x.Lengths}
	}
}

// each calls f for each part of a window: rows lo to hi of the result have, from column at, as
// many rows of the input, beginning with row from.
func (l *ExpandWindow) each(n int, f func(at, lo, hi, from int)) {
	for offset := -l.Size; offset <= l.Size; offset++ {
		lo, hi := max(0, -offset), min(n, n-offset)
		if lo < hi {
			f((offset+l.Size)*l.width, lo, hi, lo+offset)
		}
	}
}

// rows returns count rows of nI of v.
func (l *ExpandWindow) rows(v Buffer, first, count int) Buffer {
	return v.Slice(first*l.width, (first+count)*l.width)
}

var _ Layer = (*ExpandWindow)(nil)
