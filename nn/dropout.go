package nn

// Dropout sets random elements of its input to 0 while training and divides the rest by
// 1-Rate; Thinc's Dropout.v1. Otherwise it is the identity. The mask is a function of the
// Pass's Stream, so the backward pass draws it again instead of storing it.
type Dropout struct {
	// Rate is the fraction of elements set to 0, in [0, 1).
	Rate float32

	drop  dropper
	width int
}

// Init declares no parameters and returns in.
func (l *Dropout) Init(in, out []int, b *Builder) ([]int, error) {
	if l.width != 0 {
		return nil, usedLayer(b)
	}
	if out != nil && !sameShape(in, out) {
		return nil, b.errorf("dropout keeps the shape %v, but the model needs %v", in, out)
	}
	l.width = product(in)
	return in, l.drop.declare(l.Rate, b)
}

// Forward returns rows of the same shape as x.
func (l *Dropout) Forward(p *Pass, x Tensor) (Tensor, Backprop) {
	if !l.drop.active(p) {
		return x, func(dy Tensor) Tensor { return dy }
	}
	y := Tensor{Shape: x.Shape, Data: p.Backend.Temp(x.Data.Len()), Lengths: x.Lengths}
	l.drop.apply(p, y.Data, x.Data, l.width)
	return y, func(dy Tensor) Tensor {
		l.drop.apply(p, dy.Data, dy.Data, l.width)
		return dy
	}
}

// dropper holds a dropout rate and the layer number for its random draws.
type dropper struct {
	rate  float32
	layer uint32
}

// declare checks the rate and takes a layer number, even for a rate of 0, so that
// changing one layer's rate does not change the masks of the others.
func (d *dropper) declare(rate float32, b *Builder) error {
	if !(rate >= 0 && rate < 1) {
		return b.errorf("the dropout rate must be at least 0 and less than 1, not %v", rate)
	}
	d.rate, d.layer = rate, b.Random()
	return nil
}

func (d *dropper) active(p *Pass) bool { return p.Train && d.rate > 0 }

// apply drops elements of rows of the given width. Inside EachPosition, the mask is still
// a function of the row of the batch: its positions are read as one row.
func (d *dropper) apply(p *Pass, y, x Buffer, width int) {
	p.Backend.Dropout(y, x, width*p.perRow(), d.rate, d.layer, p.Random)
}

var _ Layer = (*Dropout)(nil)
