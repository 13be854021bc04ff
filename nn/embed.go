package nn

import (
	"cmp"
	"fmt"
	"slices"
)

// Embed replaces each id by a learned vector, its row of a table; Thinc's Embed.v1. A row
// of input has int32 ids of any shape, and each becomes a vector of Out elements: a row of
// T ids gives (T, Out), and a single id, a row of no dimensions, gives (Out). Embed takes the
// model's own input, so it is the first layer of a chain.
//
// With Column, the input is rows of columns instead, and Embed replaces the category of one
// column by a vector of Out elements: its row of the table, or zeros if there is none.
//
// Ids must be at least 0 and below Rows. Forward does not look at them, so a model calls
// [CheckInput] before it runs.
type Embed struct {
	// Out is the width of a vector; 0 means that the model decides.
	Out int
	// Rows is the number of rows of the table: Thinc's nV. 0 means that the model decides;
	// see [Builder.TakesIDs].
	Rows int
	// Dropout is the fraction of elements set to 0, in [0, 1); see [Dropout]. Thinc's mask
	// is the same for all ids of a batch.
	Dropout float32
	// Column is the number of a column of categories; nil for ids. See
	// [Builder.TakesColumns].
	Column *int
	// InitE sets the initial table; nil means Uniform(-0.1, 0.1), Thinc's default.
	InitE Initializer

	table  *Param
	finish finish
	path   string
	part   part // of a row of columns
	total  int  // elements of such a row
}

// Init declares E (Rows, Out).
func (l *Embed) Init(in, out []int, b *Builder) ([]int, error) {
	if l.table != nil {
		return nil, usedLayer(b)
	}
	rows, ids := l.Rows, b.plans.ids
	if l.Column != nil {
		at, span, err := b.column(*l.Column, in)
		if err != nil {
			return nil, err
		}
		if !span.Categories {
			return nil, b.errorf("Column %d has numbers, but Embed takes categories; pick numbers with nn.Columns", *l.Column)
		}
		if rows != 0 && rows != span.Width {
			return nil, b.errorf("Rows must be %d, not %d, because column %d has as many categories; leave it out", span.Width, rows, *l.Column)
		}
		l.part, l.total = part{at, span.Width}, product(in)
		rows, in = span.Width, nil
	}
	if rows == 0 {
		rows = ids
	}
	switch {
	case rows < 1:
		return nil, b.errorf("Rows must be the number of ids, at least 1, not %d", l.Rows)
	case rows < ids && l.Column == nil:
		return nil, b.errorf("Rows must be at least %d, not %d, because the rows of input have ids from 0 to %d; leave it out to use the number of ids", ids, l.Rows, ids-1)
	}
	if product(in) < 1 {
		return nil, b.errorf("rows of input have shape %v; every dimension must be at least 1", in)
	}
	width := l.Out
	if width == 0 && len(out) > 0 {
		width = out[len(out)-1]
	}
	if width < 1 {
		return nil, b.errorf("Out must be at least 1, not %d", l.Out)
	}
	made, err := outShape(slices.Concat(in, []int{width}), out, b)
	if err != nil {
		return nil, err
	}
	if b.inner {
		return nil, b.errorf("Embed follows another layer, but takes the ids of a batch; put it first")
	}
	l.path = b.Path()
	l.table = b.Param("E", []int{rows, width}, orUniform(l.InitE))
	if l.Column == nil {
		l.table.Touched = NewRowSet(rows)
	}
	return made, l.finish.declare(false, l.Dropout, product(made), b)
}

// Forward takes ids and returns vectors.
func (l *Embed) Forward(p *Pass, x Tensor) (Tensor, Backprop) {
	if l.Column != nil {
		return l.forwardColumn(p, x)
	}
	width := l.table.Shape[1]
	y := Tensor{Shape: slices.Concat(x.Shape, []int{width}), Data: p.Backend.Temp(x.Data.Len() * width), Lengths: x.Lengths}
	p.Backend.Embed(y.Data, l.table.Values, x.Data, width)
	y, back := l.finish.forward(p, y)
	return y, func(dy Tensor) Tensor {
		l.touch(x.Data)
		p.Backend.EmbedGrad(l.table.Grads, back(dy).Data, x.Data, width)
		p.final(l.table.Offset)
		return Tensor{}
	}
}

// touch notes the rows that get a gradient. Those of ids in device memory are unknown.
func (l *Embed) touch(ids Buffer) {
	if _, _, device := ids.Device(); device {
		l.table.Touched.AddAll()
		return
	}
	l.table.Touched.Add(ids.Int32s())
}

// forwardColumn multiplies the table with the elements of a column, one of which is 1.
func (l *Embed) forwardColumn(p *Pass, x Tensor) (Tensor, Backprop) {
	n, k, width := x.Rows(), l.part.width, l.table.Shape[1]
	category := p.Backend.Temp(n * k)
	p.Backend.Extract(category, x.Data, l.total, l.part.at, k)
	y := Tensor{Shape: []int{n, width}, Data: p.Backend.Temp(n * width)}
	p.Backend.Gemm(y.Data, category, l.table.Values, n, width, k, false, false, 0)
	y, back := l.finish.forward(p, y)
	return y, func(dy Tensor) Tensor {
		p.Backend.Gemm(l.table.Grads, category, back(dy).Data, k, width, n, true, false, 1)
		p.final(l.table.Offset)
		return Tensor{}
	}
}

func (l *Embed) checkInput(x Tensor) error {
	if l.Column != nil {
		return nil
	}
	if x.Data.DType() != Int32 {
		return &LayerError{Path: cmp.Or(l.path, "model"), Msg: fmt.Sprintf("Embed takes int32 ids, but the rows hold %v", x.Data.DType())}
	}
	rows := l.Rows
	if l.table != nil {
		rows = l.table.Shape[0] // Init knows more
	}
	for i, id := range x.Data.Int32s() {
		if id < 0 || int(id) >= rows {
			each := max(1, product(x.Shape[1:]))
			return fmt.Errorf("nn: row %d of the batch has id %d at position %d, but the table has rows 0 to %d", i/each, id, i%each, rows-1)
		}
	}
	return nil
}

var _ Layer = (*Embed)(nil)
