package nn

type padded struct {
	layer Layer
	pad   int
}

// Padded applies a layer to the tokens of documents with rows of zeros between: pad rows before
// each document and after the last. The layer treats them like tokens; afterwards they are
// dropped. It is Thinc's with_array.v1 with pad. A layer that sees at most pad rows to each side
// then sees no other document, as n layers of [ExpandWindow] with n·Size = pad. The parameters
// are in the scope "layers.0".
func Padded(layer Layer, pad int) Layer { return &padded{layer: layer, pad: pad} }

// Init passes the shape of rows on.
func (l *padded) Init(in, out []int, b *Builder) ([]int, error) {
	if err := b.tokens("Padded", in); err != nil {
		return nil, err
	}
	if l.pad < 1 {
		return nil, b.errorf("pad must be at least 1, not %d", l.pad)
	}
	scope := b.element(0)
	scope.inner = true
	return scope.place(l.layer, in, out)
}

// Forward takes and returns the tokens of documents.
func (l *padded) Forward(p *Pass, x Tensor) (Tensor, Backprop) {
	lengths := x.Lengths
	if lengths == nil {
		lengths = []int{x.Rows()}
	}
	inner, back := l.layer.Forward(p, l.spread(p, x, lengths))
	return l.collect(p, inner, x.Rows(), lengths), func(dy Tensor) Tensor {
		wide := l.spread(p, dy, lengths)
		dx := back(wide)
		if !dx.Data.sameStart(wide.Data) {
			p.release(wide.Data)
		}
		if dx.empty() {
			return dx
		}
		plain := l.collect(p, dx, x.Rows(), lengths)
		p.release(dx.Data)
		return plain
	}
}

// spread inserts the rows of zeros.
func (l *padded) spread(p *Pass, x Tensor, lengths []int) Tensor {
	shape, wide := append([]int{x.Rows() + l.pad*(len(lengths)+1)}, x.Shape[1:]...), make([]int, len(lengths))
	y := Tensor{Shape: shape, Data: p.Backend.Temp(product(shape)), Lengths: wide}
	p.Backend.Zero(y.Data)
	l.each(x, lengths, func(from, to, n int) {
		duplicate(p.Backend, y.Data.Slice(to, to+n), x.Data.Slice(from, from+n))
	})
	for i, n := range lengths {
		wide[i] = l.pad + n
	}
	if last := len(wide) - 1; last >= 0 {
		wide[last] += l.pad
	}
	return y
}

// collect is the inverse of spread.
func (l *padded) collect(p *Pass, y Tensor, rows int, lengths []int) Tensor {
	shape := append([]int{rows}, y.Shape[1:]...)
	x := Tensor{Shape: shape, Data: p.Backend.Temp(product(shape)), Lengths: lengths}
	l.each(y, lengths, func(to, from, n int) {
		duplicate(p.Backend, x.Data.Slice(to, to+n), y.Data.Slice(from, from+n))
	})
	return x
}

// each calls f with the offsets of each document without and with padding, and the number of
// its elements.
func (l *padded) each(x Tensor, lengths []int, f func(plain, wide, n int)) {
	width, plain, wide := product(x.Shape[1:]), 0, 0
	for _, tokens := range lengths {
		wide += l.pad * width
		f(plain, wide, tokens*width)
		plain += tokens * width
		wide += tokens * width
	}
}
