package cpu

import "github.com/ringtrain/ringtrain/nn"

// Embed implements nn.Sequences. An id outside the table panics.
func (b *Backend) Embed(y, table, ids nn.Buffer, width int) {
	ys, rows := y.Float32s(), table.Float32s()
	matchIDs(y, ids, width)
	for i, id := range ids.Int32s() {
		copy(ys[i*width:][:width], rows[int(id)*width:][:width])
	}
}

// EmbedGrad implements nn.Sequences.
func (b *Backend) EmbedGrad(dtable, dy, ids nn.Buffer, width int) {
	dys, rows := dy.Float32s(), dtable.Float32s()
	matchIDs(dy, ids, width)
	for i, id := range ids.Int32s() {
		add(rows[int(id)*width:][:width], dys[i*width:][:width])
	}
}

func matchIDs(y, ids nn.Buffer, width int) {
	if y.Len() != len(ids.Int32s())*width {
		panic("cpu: the number of vectors is not the number of int32 ids")
	}
}
