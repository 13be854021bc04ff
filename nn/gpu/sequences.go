package gpu

import (
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/cuda/kernels"
	"github.com/ringtrain/ringtrain/nn"
)

// Embed implements nn.Sequences.
func (b *Backend) Embed(y, table, ids nn.Buffer, width int) {
	need("Embed", y.Len() == ids.Len()*width && ids.DType() == nn.Int32)
	rows("Embed", table, width)
	b.launch("embed", y.Len(), b.at(y), b.reads(table), b.reads(ids), count(y.Len()), number(width))
}

// EmbedGrad implements nn.Sequences.
func (b *Backend) EmbedGrad(dtable, dy, ids nn.Buffer, width int) {
	need("EmbedGrad", dy.Len() == ids.Len()*width && ids.DType() == nn.Int32)
	rows("EmbedGrad", dtable, width)
	b.launch("embed_grad", dtable.Len(), b.at(dtable), b.reads(dy), b.reads(ids), count(dtable.Len()), number(width), number(ids.Len()))
}

// heads returns a as a kernel argument, and the number of rows of y.
func heads(method string, y nn.Buffer, a nn.Heads) (cuda.Arg, int) {
	return cuda.Struct(kernels.NewHeads(a)), rows(method, y, a.Positions*a.Heads*a.Width)
}

// Attention implements nn.Sequences, except that it adds up products and exponentials in
// a different order.
func (b *Backend) Attention(y, weights, qkv nn.Buffer, a nn.Heads) {
	h, n := heads("Attention", y, a)
	need("Attention", qkv.Len() == 3*y.Len() && weights.Len() == a.Weights(n))
	queries := n * a.Heads * a.Positions
	b.launch("attention_weights", queries, b.at(weights), b.reads(qkv), number(queries), h)
	b.launch("attention", y.Len(), b.at(y), b.reads(weights), b.reads(qkv), count(y.Len()), h)
}

// AttentionGrad implements nn.Sequences, with sums as in Attention.
func (b *Backend) AttentionGrad(dqkv, dy, weights, qkv nn.Buffer, a nn.Heads) {
	h, n := heads("AttentionGrad", dy, a)
	need("AttentionGrad", qkv.Len() == 3*dy.Len() && dqkv.Len() == qkv.Len() && weights.Len() == a.Weights(n))
	queries := n * a.Heads * a.Positions
	b.launch("attention_values_grad", dy.Len(), b.at(dqkv), b.reads(dy), b.reads(weights), count(dy.Len()), h)
	b.launch("attention_scores_grad", queries, b.at(weights), b.reads(dy), b.reads(qkv), number(queries), h)
	b.launch("attention_grad", 2*dy.Len(), b.at(dqkv), b.reads(qkv), b.reads(weights), count(dy.Len()), h)
}
