package gpu

import (
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/cuda/kernels"
	"github.com/ringtrain/ringtrain/nn"
)

// window returns s as a kernel's argument.
func window(s nn.Window) cuda.Arg { return cuda.Struct(kernels.NewWindow(s)) }

// taps returns the number of elements of a filter.
func taps(s nn.Window) int { return s.Channels * s.Size * s.Size }

// convolution describes a pass of a convolution for cuDNN.
func convolution(pass cuda.ConvPass, rows, filters int, s nn.Window) cuda.Convolution {
	return cuda.Convolution{
		Pass: pass, Rows: rows, Channels: s.Channels, Height: s.Height, Width: s.Width,
		Filters: filters, Size: s.Size, Stride: s.Stride, Padding: s.Padding,
	}
}

// Conv2D implements nn.Conv.
func (b *Backend) Conv2D(y, x, w, bias nn.Buffer, s nn.Window) {
	n, filters := rows("Conv2D", x, s.In()), bias.Len()
	need("Conv2D", y.Len() == n*filters*s.Plane() && w.Len() == filters*taps(s))
	if n == 0 {
		return
	}
	c := conv{
		method: "Conv2D", Convolution: convolution(cuda.ConvForward, n, filters, s),
		at: cuda.ConvOperands{X: b.address(x), W: b.address(w), Y: b.ptr(y), Bias: b.address(bias)},
		ours: func() {
			b.launch("conv2d", y.Len(), b.at(y), b.at(x), b.at(w), b.at(bias), number(n), number(filters), window(s))
		},
	}
	b.convolve(c, func() conv { return c })
}

// ConvGradMemory returns the bytes that Conv2DGrad takes at most from Temp for the sums of
// our kernels. A trial of cuDNN's algorithms takes them once more.
func ConvGradMemory(weights, filters int) int {
	return kernels.Shares * (weights + filters) * elementBytes
}

// Conv2DGrad implements nn.Conv. The order of a sum depends on the number of rows.
func (b *Backend) Conv2DGrad(dw, db, dy, x nn.Buffer, s nn.Window) {
	n, filters := rows("Conv2DGrad", x, s.In()), db.Len()
	need("Conv2DGrad", dy.Len() == n*filters*s.Plane() && dw.Len() == filters*taps(s))
	if n == 0 {
		return
	}
	// sums adds to dw and db with our kernels. If dw is empty and the window has no
	// channels, it adds only to db.
	sums := func(dw, db nn.Buffer, parts nn.Buffer, s nn.Window) {
		items := dw.Len() + filters
		b.launch("conv2d_grad_parts", items, b.at(parts), b.at(dy), b.at(x), number(n), number(filters), window(s))
		b.launch("conv2d_grad", items, b.at(dw), b.at(db), b.at(parts), number(dw.Len()), number(filters), number(kernels.Shares))
	}
	biasOnly := s
	biasOnly.Channels = 0
	into := func(dw, db nn.Buffer, temp func(items int) nn.Buffer) conv {
		return conv{
			method: "Conv2DGrad", Convolution: convolution(cuda.ConvWeights, n, filters, s),
			at:   cuda.ConvOperands{X: b.address(x), W: b.ptr(dw), Y: b.address(dy)},
			ours: func() { sums(dw, db, temp(dw.Len()+filters), s) },
			rest: func() { sums(dw.Slice(0, 0), db, temp(filters), biasOnly) },
		}
	}
	temp := func(items int) nn.Buffer { return b.Temp(kernels.Shares * items) }
	b.convolve(into(dw, db, temp), func() conv {
		trial := b.Temp(dw.Len() + filters)
		b.Zero(trial)
		parts := temp(trial.Len()) // allocated once, because trials run in captures
		return into(trial.Slice(0, dw.Len()), trial.Slice(dw.Len(), trial.Len()), func(items int) nn.Buffer { return parts.Slice(0, kernels.Shares*items) })
	})
}

// Conv2DInputGrad implements nn.Conv.
func (b *Backend) Conv2DInputGrad(dx, dy, w nn.Buffer, s nn.Window) {
	n, filters := rows("Conv2DInputGrad", dx, s.In()), w.Len()/taps(s)
	need("Conv2DInputGrad", dy.Len() == n*filters*s.Plane() && w.Len() == filters*taps(s))
	if n == 0 {
		return
	}
	c := conv{
		method: "Conv2DInputGrad", Convolution: convolution(cuda.ConvInput, n, filters, s),
		at: cuda.ConvOperands{X: b.ptr(dx), W: b.address(w), Y: b.address(dy)},
		ours: func() {
			b.launch("conv2d_input_grad", dx.Len(), b.at(dx), b.at(dy), b.at(w), number(n), number(filters), window(s))
		},
	}
	b.convolve(c, func() conv { return c })
}

// MaxPool implements nn.Conv.
func (b *Backend) MaxPool(y, x nn.Buffer, s nn.Window) {
	planes := rows("MaxPool", x, s.In()) * s.Channels
	need("MaxPool", y.Len() == planes*s.Plane())
	b.launch("max_pool", y.Len(), b.at(y), b.at(x), number(planes), window(s))
}

// MaxPoolGrad implements nn.Conv.
func (b *Backend) MaxPoolGrad(dx, dy, x, y nn.Buffer, s nn.Window) {
	planes := rows("MaxPoolGrad", x, s.In()) * s.Channels
	need("MaxPoolGrad", dx.Len() == x.Len() && dy.Len() == y.Len() && y.Len() == planes*s.Plane())
	b.launch("max_pool_grad", dx.Len(), b.at(dx), b.at(dy), b.at(x), b.at(y), number(planes), window(s))
}
