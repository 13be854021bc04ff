package gpu

import (
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/cuda/kernels"
	"github.com/ringtrain/ringtrain/nn"
)

// window is s as an argument.
func window(s nn.Window) cuda.Arg { return cuda.Struct(kernels.NewWindow(s)) }

// taps is how many elements a filter has.
func taps(s nn.Window) int { return s.Channels * s.Size * s.Size }

// Conv2D implements nn.Conv.
func (b *Backend) Conv2D(y, x, w, bias nn.Buffer, s nn.Window) {
	n, filters := rows("Conv2D", x, s.In()), bias.Len()
	need("Conv2D", y.Len() == n*filters*s.Plane() && w.Len() == filters*taps(s))
	b.launch("conv2d", y.Len(), b.at(y), b.at(x), b.at(w), b.at(bias), number(n), number(filters), window(s))
}

// Conv2DGrad implements nn.Conv. The order of a sum depends on the number of rows.
func (b *Backend) Conv2DGrad(dw, db, dy, x nn.Buffer, s nn.Window) {
	n, filters := rows("Conv2DGrad", x, s.In()), db.Len()
	need("Conv2DGrad", dy.Len() == n*filters*s.Plane() && dw.Len() == filters*taps(s))
	if n == 0 {
		return
	}
	items := dw.Len() + filters
	parts := b.Temp(kernels.Shares * items)
	b.launch("conv2d_grad_parts", items, b.at(parts), b.at(dy), b.at(x), number(n), number(filters), window(s))
	b.launch("conv2d_grad", items, b.at(dw), b.at(db), b.at(parts), number(dw.Len()), number(filters), number(kernels.Shares))
}

// Conv2DInputGrad implements nn.Conv.
func (b *Backend) Conv2DInputGrad(dx, dy, w nn.Buffer, s nn.Window) {
	n, filters := rows("Conv2DInputGrad", dx, s.In()), w.Len()/taps(s)
	need("Conv2DInputGrad", dy.Len() == n*filters*s.Plane() && w.Len() == filters*taps(s))
	b.launch("conv2d_input_grad", dx.Len(), b.at(dx), b.at(dy), b.at(w), number(n), number(filters), window(s))
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
