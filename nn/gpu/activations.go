package gpu

import (
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn"
)

// Gelu implements nn.Activations.
func (b *Backend) Gelu(y, x nn.Buffer) {
	need("Gelu", x.Len() == y.Len())
	b.launch("gelu", y.Len(), b.at(y), b.reads(x), count(y.Len()))
}

// GeluGrad implements nn.Activations.
func (b *Backend) GeluGrad(dx, dy, x nn.Buffer) {
	need("GeluGrad", dy.Len() == dx.Len() && x.Len() == dx.Len())
	b.launch("gelu_grad", dx.Len(), b.at(dx), b.reads(dy), b.reads(x), count(dx.Len()))
}

// Maxout implements nn.Activations.
func (b *Backend) Maxout(y, x nn.Buffer, pieces int) {
	need("Maxout", rows("Maxout", x, pieces) == y.Len())
	b.launch("maxout", y.Len(), b.at(y), b.reads(x), count(y.Len()), number(pieces))
}

// MaxoutGrad implements nn.Activations.
func (b *Backend) MaxoutGrad(dx, dy, x nn.Buffer, pieces int) {
	need("MaxoutGrad", rows("MaxoutGrad", x, pieces) == dy.Len() && dx.Len() == x.Len())
	b.launch("maxout_grad", dy.Len(), b.at(dx), b.reads(dy), b.reads(x), count(dy.Len()), number(pieces))
}

// AvgPool implements nn.Conv.
func (b *Backend) AvgPool(y, x nn.Buffer, s nn.Window) {
	planes := rows("AvgPool", x, s.In()) * s.Channels
	need("AvgPool", y.Len() == planes*s.Plane())
	b.launch("avg_pool", y.Len(), b.at(y), b.reads(x), number(planes), share(s), window(s))
}

// AvgPoolGrad implements nn.Conv.
func (b *Backend) AvgPoolGrad(dx, dy nn.Buffer, s nn.Window) {
	planes := rows("AvgPoolGrad", dx, s.In()) * s.Channels
	need("AvgPoolGrad", dy.Len() == planes*s.Plane())
	b.launch("avg_pool_grad", dx.Len(), b.at(dx), b.reads(dy), number(planes), share(s), window(s))
}

// share returns what one element contributes to the mean of a window.
func share(s nn.Window) cuda.Arg { return cuda.Float32(1 / float32(s.Size*s.Size)) }
