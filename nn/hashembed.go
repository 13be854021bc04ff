package nn

import (
	"cmp"
	"fmt"
	"math"
)

// HashEmbed replaces an id by a vector: the sum of four rows of a table, which hashes of the id
// choose. It needs no vocabulary, and two ids rarely share all four rows. It is Thinc's
// HashEmbed.v1 (Svenstrup, Hansen and Winther: "Hash embeddings for efficient word
// representations", 2017).
//
// A row of input has an id for each column, as [WideIDs] makes them, and becomes a vector of
// Out elements for one column. HashEmbed takes the model's own input, so it is the first layer
// of a chain; [Concatenate] joins the vectors of several columns. It hashes on the host, so
// steps of its model cannot be recorded. A Backprop must be called before the next Forward.
type HashEmbed struct {
	// Out is the width of a vector; 0 means that the model decides.
	Out int
	// Rows is the number of rows of the table: Thinc's nV.
	Rows int
	// Seed of the hash. Tables with the same Seed choose the same rows for equal ids.
	Seed uint32
	// Column is the number of the column, from 0.
	Column int
	// Dropout is the fraction of elements set to 0, in [0, 1); see [Dropout]. The mask is one
	// vector, the same for all rows of a batch.
	Dropout float32
	// InitE sets the initial table; nil means Uniform(-0.1, 0.1), Thinc's default.
	InitE Initializer

	table  *Param
	drop   dropper
	path   string
	hashed []int32 // rows of the table, on the host
	keys   Buffer  // and in the backend's memory
}

// chosen is the number of rows of the table that are added up for an id.
const chosen = 4

// Init declares E (Rows, Out).
func (l *HashEmbed) Init(in, out []int, b *Builder) ([]int, error) {
	switch {
	case l.table != nil:
		return nil, usedLayer(b)
	case b.inner:
		return nil, b.errorf("HashEmbed follows another layer, but takes the ids of a batch; put it first")
	case len(in) != 2 || in[0] < 1 || in[1] != 2:
		return nil, b.errorf("rows of input have shape %v, but HashEmbed takes the ids of tokens (columns, 2); only documents have them", in)
	case l.Column < 0 || l.Column >= in[0]:
		return nil, b.errorf("Column must be from 0 to %d, not %d", in[0]-1, l.Column)
	case l.Rows < 1 || l.Rows > math.MaxInt32:
		return nil, b.errorf("Rows must be from 1 to %d, not %d", math.MaxInt32, l.Rows)
	}
	width, err := outputs(l.Out, out)
	if err != nil {
		return nil, b.errorf("%v", err)
	}
	b.OnHost()
	l.path = b.Path()
	l.table = b.Param("E", []int{l.Rows, width}, orUniform(l.InitE))
	l.table.Touched = NewRowSet(l.Rows)
	return []int{width}, l.drop.declare(l.Dropout, b)
}

// Forward takes rows of ids and returns rows of Out elements.
func (l *HashEmbed) Forward(p *Pass, x Tensor) (Tensor, Backprop) {
	be, n, width := p.Backend, x.Rows(), l.table.Shape[1]
	keys := l.choose(be, x)
	y := Tensor{Shape: []int{n, width}, Data: be.Temp(n * width), Lengths: x.Lengths}
	be.Embed(y.Data, l.table.Values, keys[0], width)
	next := be.Temp(n * width)
	for _, k := range keys[1:] {
		be.Embed(next, l.table.Values, k, width)
		be.Add(y.Data, y.Data, next)
	}
	p.release(next)
	drop := func(Buffer) {}
	if l.drop.active(p) {
		mask, scale := l.mask(p, n), 1/(1-l.Dropout)
		drop = func(v Buffer) { be.ReluGrad(v, v, mask, scale) }
	}
	drop(y.Data)
	return y, func(dy Tensor) Tensor {
		drop(dy.Data)
		l.table.Touched.Add(l.hashed[:chosen*n])
		for _, k := range keys {
			be.EmbedGrad(l.table.Grads, dy.Data, k, width)
		}
		p.final(l.table.Offset)
		return Tensor{}
	}
}

// choose returns the rows of the table that are added up for each id: first one of each id,
// then the second of each, and so on.
func (l *HashEmbed) choose(be Backend, x Tensor) (keys [chosen]Buffer) {
	n, columns, ids := x.Rows(), x.Shape[1], x.Data.Int32s()
	if size := chosen * n; size > len(l.hashed) {
		l.hashed = make([]int32, max(size, 2*len(l.hashed)))
		l.keys = be.AllocInts(len(l.hashed))
	}
	for i := range n {
		for k, h := range murmur(wideID(ids, i*columns+l.Column), l.Seed) {
			l.hashed[k*n+i] = int32(h % uint32(l.Rows))
		}
	}
	be.CopyInts(l.keys.Slice(0, chosen*n), l.hashed[:chosen*n])
	for k := range keys {
		keys[k] = l.keys.Slice(k*n, (k+1)*n)
	}
	return keys
}

// mask returns n equal rows, which are greater than 0 where a column is kept. ReluGrad applies
// them. They are drawn for the first row of the batch.
func (l *HashEmbed) mask(p *Pass, n int) Buffer {
	be, width := p.Backend, l.table.Shape[1]
	row, rows := be.Temp(width), be.Temp(n*width)
	be.Zero(row)
	be.Rescale(row, row, 1, 1)
	l.drop.apply(p, row, row, width)
	be.Zero(rows)
	be.AddBias(rows, row)
	return rows
}

func (l *HashEmbed) checkInput(x Tensor) error {
	switch {
	case x.Data.DType() != Int32:
		return &LayerError{Path: cmp.Or(l.path, "model"), Msg: fmt.Sprintf("HashEmbed takes int32 halves of ids, but the rows hold %v", x.Data.DType())}
	case x.Data.Len() > 0 && x.Data.Int32s() == nil:
		return &LayerError{Path: cmp.Or(l.path, "model"), Msg: "HashEmbed takes ids in host memory, but the rows are in device memory; use nn.WideIDs"}
	}
	return nil
}

var _ Layer = (*HashEmbed)(nil)
