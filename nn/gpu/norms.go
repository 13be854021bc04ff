package gpu

import (
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn"
)

// LayerNorm implements nn.Norms.
func (b *Backend) LayerNorm(y, moments, x, g, shift nn.Buffer, eps float32) {
	n, width := rows("LayerNorm", x, g.Len()), g.Len()
	need("LayerNorm", y.Len() == x.Len() && moments.Len() == 2*n && shift.Len() == width)
	b.launch("layer_norm", n, b.at(y), b.at(moments), b.reads(x), b.reads(g), b.reads(shift), number(n), number(width), cuda.Float32(eps))
}

// LayerNormGrad implements nn.Norms, except that the order in which the gradients of g and
// shift are summed depends on the number of rows.
func (b *Backend) LayerNormGrad(dx, dg, db, dy, x, moments, g nn.Buffer) {
	n, width := rows("LayerNormGrad", x, g.Len()), g.Len()
	need("LayerNormGrad", dx.Len() == x.Len() && dy.Len() == x.Len() && moments.Len() == 2*n && dg.Len() == width && db.Len() == width)
	if n == 0 {
		return
	}
	b.launch("layer_norm_weights", width, b.at(dg), b.at(db), b.reads(dy), b.reads(x), b.reads(moments), number(n), number(width))
	b.launch("layer_norm_grad", n, b.at(dx), b.reads(dy), b.reads(x), b.reads(moments), b.reads(g), number(n), number(width)) // last, because dx may be dy
}

// A batch is rows of images to normalise.
type batch struct {
	rows, channels, plane int
}

// batchOf checks the lengths of m, x and the others, which must be as long as x.
func (b *Backend) batchOf(method string, m nn.Moments, x nn.Buffer, others ...nn.Buffer) batch {
	s := batch{channels: m.Mean.Len(), plane: m.Plane}
	need(method, s.plane > 0 && m.Variance.Len() == s.channels)
	s.rows = rows(method, x, s.channels*s.plane)
	for _, v := range others {
		need(method, v.Len() == x.Len())
	}
	return s
}

// perChannel returns the number of elements of a channel as an argument.
func (s batch) perChannel() cuda.Arg { return cuda.Float32(float32(s.rows * s.plane)) }

// ChannelMoments implements nn.Norms.
func (b *Backend) ChannelMoments(m nn.Moments, x nn.Buffer) {
	s := b.batchOf("ChannelMoments", m, x)
	need("ChannelMoments", s.rows > 0)
	planes := s.rows * s.channels
	parts := b.Temp(planes)
	moment := func(into nn.Buffer, mean cuda.Arg) {
		b.launch("plane_sums", planes, b.at(parts), b.reads(x), mean, number(planes), number(s.channels), number(s.plane))
		b.launch("channel_sums", s.channels, b.at(into), b.reads(parts), number(s.rows), number(s.channels), s.perChannel())
	}
	moment(m.Mean, cuda.Ptr(0).Arg())
	moment(m.Variance, b.reads(m.Mean))
}

// BatchNorm implements nn.Norms.
func (b *Backend) BatchNorm(y, x, g, shift nn.Buffer, m nn.Moments) {
	s := b.batchOf("BatchNorm", m, x, y)
	need("BatchNorm", g.Len() == s.channels && shift.Len() == s.channels)
	b.launch("batch_norm", y.Len(), b.at(y), b.reads(x), b.reads(g), b.reads(shift), b.reads(m.Mean), b.reads(m.Variance),
		count(y.Len()), number(s.channels), number(s.plane), cuda.Float32(m.Eps))
}

// BatchNormGrad implements nn.Norms.
func (b *Backend) BatchNormGrad(dx, dg, db, dy, x, g nn.Buffer, m nn.Moments) {
	s := b.batchOf("BatchNormGrad", m, x, dx, dy)
	need("BatchNormGrad", dg.Len() == s.channels && db.Len() == s.channels && g.Len() == s.channels)
	if s.rows == 0 {
		return
	}
	planes, columns := s.rows*s.channels, 2*s.channels
	parts, sums := b.Temp(2*planes), b.Temp(columns)
	b.launch("plane_grads", planes, b.at(parts), b.reads(dy), b.reads(x), b.reads(m.Mean), b.reads(m.Variance),
		number(planes), number(s.channels), number(s.plane), cuda.Float32(m.Eps))
	b.launch("channel_sums", columns, b.at(sums), b.reads(parts), number(s.rows), number(columns), cuda.Float32(1))
	b.Axpy(db, 1, sums.Slice(0, s.channels))
	b.Axpy(dg, 1, sums.Slice(s.channels, columns))
	means := b.reads(sums)
	if m.Fixed {
		means = cuda.Ptr(0).Arg()
	}
	b.launch("batch_norm_grad", dx.Len(), b.at(dx), b.reads(dy), b.reads(x), b.reads(g), b.reads(m.Mean), b.reads(m.Variance), means,
		count(dx.Len()), number(s.channels), number(s.plane), s.perChannel(), cuda.Float32(m.Eps))
}
