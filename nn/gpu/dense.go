package gpu

import (
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/cuda/kernels"
	"github.com/ringtrain/ringtrain/nn"
)

// AddBias implements nn.Dense.
func (b *Backend) AddBias(y, bias nn.Buffer) {
	rows("AddBias", y, bias.Len())
	b.launch("add_bias", y.Len(), b.at(y), b.at(bias), count(y.Len()), number(bias.Len()))
}

// SumRows implements nn.Dense. The order of a sum depends on the number of rows.
func (b *Backend) SumRows(sum, y nn.Buffer) {
	if n := rows("SumRows", y, sum.Len()); n > 0 {
		b.launch("sum_rows", sum.Len(), b.at(sum), b.address(y).Arg(), number(n), number(sum.Len()))
	}
}

// Rescale implements nn.Dense.
func (b *Backend) Rescale(y, x nn.Buffer, scale, shift float32) {
	need("Rescale", x.Len() == y.Len())
	b.launch("rescale", y.Len(), b.at(y), b.at(x), cuda.Float32(scale), cuda.Float32(shift), count(y.Len()))
}

// Relu implements nn.Dense.
func (b *Backend) Relu(y, x nn.Buffer) {
	need("Relu", x.Len() == y.Len())
	b.launch("relu", y.Len(), b.at(y), b.at(x), count(y.Len()))
}

// ReluGrad implements nn.Dense.
func (b *Backend) ReluGrad(dx, dy, y nn.Buffer, scale float32) {
	need("ReluGrad", dy.Len() == dx.Len() && y.Len() == dx.Len())
	b.launch("relu_grad", dx.Len(), b.at(dx), b.at(dy), b.at(y), cuda.Float32(scale), count(dx.Len()))
}

// Dropout implements nn.Dense. For Dropout in recordings see Redraw.
func (b *Backend) Dropout(y, x nn.Buffer, width int, rate float32, layer uint32, s nn.Stream) {
	need("Dropout", x.Len() == y.Len())
	n := rows("Dropout", y, width)
	if n == 0 {
		return
	}
	random := b.draws(s)
	b.launch("dropout", n*((width+3)/4), b.at(y), b.at(x), count(n), number(width),
		cuda.Uint32(kernels.LeastBits(rate)), cuda.Float32(1/(1-rate)), cuda.Uint32(layer), random.Arg())
}

// Softmax implements nn.Dense.
func (b *Backend) Softmax(y, x nn.Buffer, width int) {
	need("Softmax", x.Len() == y.Len())
	n := rows("Softmax", y, width)
	b.launch("softmax", n, b.at(y), b.at(x), number(n), number(width))
}

// CrossEntropy implements nn.Dense.
func (b *Backend) CrossEntropy(dlogits, loss, p, labels nn.Buffer) {
	n := labels.Len()
	need("CrossEntropy", loss.Len() > 0 && p.Len()%max(1, n) == 0 && (dlogits.Len() == 0 || dlogits.Len() == p.Len()))
	if n == 0 {
		return
	}
	width := p.Len() / n
	b.launch("cross_entropy", n, b.at(loss), b.at(p), b.at(labels), number(n), number(width))
	if dlogits.Len() > 0 {
		b.launch("cross_entropy_grad", p.Len(), b.at(dlogits), b.at(p), b.at(labels), number(n), number(width))
	}
}

// SmoothedCrossEntropy implements nn.Dense.
func (b *Backend) SmoothedCrossEntropy(dlogits, loss, p, labels nn.Buffer, smoothing float32) {
	n := labels.Len()
	need("SmoothedCrossEntropy", loss.Len() > 0 && p.Len()%max(1, n) == 0 && (dlogits.Len() == 0 || dlogits.Len() == p.Len()))
	if n == 0 {
		return
	}
	width := p.Len() / n
	on, off := cuda.Float32(1-smoothing), cuda.Float32(smoothing/float32(max(1, width-1)))
	b.launch("smoothed_cross_entropy", n, b.at(loss), b.reads(p), b.reads(labels), on, off, number(n), number(width))
	if dlogits.Len() > 0 {
		b.launch("smoothed_cross_entropy_grad", p.Len(), b.at(dlogits), b.reads(p), b.reads(labels), on, off, number(n), number(width))
	}
}

// SquaredError implements nn.Dense.
func (b *Backend) SquaredError(dy, loss, y, t nn.Buffer) { b.errors("squared_error", dy, loss, y, t) }

// HuberError implements nn.Dense.
func (b *Backend) HuberError(dy, loss, y, t nn.Buffer, delta float32) {
	b.errors("huber_error", dy, loss, y, t, cuda.Float32(delta))
}

// AbsoluteError implements nn.Dense.
func (b *Backend) AbsoluteError(dy, loss, y, t nn.Buffer) { b.errors("absolute_error", dy, loss, y, t) }

// errors queues the kernel of a loss and, unless dy is empty, that of its gradient.
func (b *Backend) errors(kernel string, dy, loss, y, t nn.Buffer, more ...cuda.Arg) {
	n := y.Len()
	need(kernel, loss.Len() > 0 && t.Len() == n && (dy.Len() == 0 || dy.Len() == n))
	if n == 0 {
		return
	}
	more = append(more, count(n))
	b.launch(kernel, n, append([]cuda.Arg{b.at(loss), b.reads(y), b.reads(t)}, more...)...)
	if dy.Len() > 0 {
		b.launch(kernel+"_grad", n, append([]cuda.Arg{b.at(dy), b.reads(y), b.reads(t)}, more...)...)
	}
}

// Correct implements nn.Dense.
func (b *Backend) Correct(count, scores, labels nn.Buffer) {
	n := labels.Len()
	need("Correct", count.Len() > 0 && scores.Len()%max(1, n) == 0)
	if n == 0 {
		return
	}
	b.launch("correct", n, b.at(count), b.at(scores), b.at(labels), number(n), number(scores.Len()/n))
}
