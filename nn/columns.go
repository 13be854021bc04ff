package nn

import "slices"

// A ColumnSpan says how many elements of a row a column has, in the order of columns.
type ColumnSpan struct {
	Width int
	// Categories means that an element is 1 for the category of the row, and the others are
	// 0. All are 0 if the row has none of the categories.
	Categories bool
}

// TakesColumns says that rows of the model's input are columns. [Embed.Column] and [Columns]
// refer to them by their number, from 0.
func (b *Builder) TakesColumns(columns []ColumnSpan) {
	b.plans.columns, b.plans.begins = slices.Clone(columns), make([]int, 1, len(columns)+1)
	for i, c := range columns {
		b.plans.begins = append(b.plans.begins, b.plans.begins[i]+c.Width)
	}
}

// column returns the span of a column of rows of shape in, and where it begins.
func (b *Builder) column(number int, in []int) (at int, span ColumnSpan, err error) {
	all := b.plans.columns
	switch {
	case b.inner:
		return 0, span, b.errorf("Column refers to a column of a batch, but the layer follows another; put it first")
	case len(all) == 0:
		return 0, span, b.errorf("Column is %d, but rows of input have no columns; leave it out", number)
	case number < 0 || number >= len(all):
		return 0, span, b.errorf("Column must be from 0 to %d, not %d", len(all)-1, number)
	}
	begins := b.plans.begins
	if total := begins[len(all)]; !sameShape(in, []int{total}) {
		return 0, span, b.errorf("rows of input have shape %v, but their columns have %d elements", in, total)
	}
	return begins[number], all[number], nil
}

// Columns picks columns of the model's own input, so it is the first layer of a chain. See
// [Builder.TakesColumns].
type Columns struct {
	Columns []int // numbers of the columns, in the order of the result

	total int
	parts []part
}

// A part is some elements of a row.
type part struct{ at, width int }

// Init declares no parameters.
func (l *Columns) Init(in, out []int, b *Builder) ([]int, error) {
	if l.parts != nil {
		return nil, usedLayer(b)
	}
	if len(l.Columns) == 0 {
		return nil, b.errorf("Columns is empty; list at least one")
	}
	l.total = product(in)
	width := 0
	for _, number := range l.Columns {
		at, span, err := b.column(number, in)
		if err != nil {
			return nil, err
		}
		l.parts = append(l.parts, part{at, span.Width})
		width += span.Width
	}
	return outShape([]int{width}, out, b)
}

// Forward copies the columns. Nothing needs the gradient of the model's input.
func (l *Columns) Forward(p *Pass, x Tensor) (Tensor, Backprop) {
	width := 0
	for _, c := range l.parts {
		width += c.width
	}
	y := Tensor{Shape: []int{x.Rows(), width}, Data: p.Backend.Temp(x.Rows() * width)}
	to := 0
	for _, c := range l.parts {
		one := p.Backend.Temp(x.Rows() * c.width)
		p.Backend.Extract(one, x.Data, l.total, c.at, c.width)
		p.Backend.Insert(y.Data, one, width, to, c.width)
		to += c.width
	}
	return y, func(Tensor) Tensor { return Tensor{} }
}

var _ Layer = (*Columns)(nil)
