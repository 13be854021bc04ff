package nn

// A Fuser is a Backend that computes a matrix product together with the element-wise
// steps around it, and the softmax together with the loss of a Classifier. Each method
// gives the results of the calls it names, within rounding, except that it may give 0
// where Relu keeps a NaN. w is (bias.Len(), nI).
type Fuser interface {
	// Affine is Gemm of y = x·wᵀ, AddBias of bias to y and, if relu is set, Relu of y.
	// gate announces a later ReluInputGrad with y, before Recycle. y is neither x nor w.
	Affine(y, x, w, bias Buffer, relu, gate bool)
	// AffineGrad is SumRows of dy into db and Gemm of dw = dyᵀ·x + dw. zeroed means that
	// dw and db are 0, so they may be overwritten.
	AffineGrad(dw, db, dy, x Buffer, zeroed bool)
	// ReluInputGrad is Gemm of dx = dy·w, then ReluGrad of dx by x with scale 1. x is the
	// unchanged result of Affine with relu and gate set, and has as many rows as dx.
	ReluInputGrad(dx, dy, w, x Buffer, rows int)
	// SoftmaxLoss is Zero of loss (one element), Softmax of x, and CrossEntropy of the
	// result into loss and x. x becomes the gradient.
	SoftmaxLoss(loss, x, labels Buffer)
}

// A joint says how a layer shares the gradient mask of a Relu with its neighbours in a
// chain when the backend is a Fuser: the layer after the Relu applies the mask, in the
// product that computes the gradient.
type joint struct {
	takes  bool // this layer masks the gradient of its input
	leaves bool // this layer is Relu and leaves its mask to the next layer
}

// weighted is a layer that begins with a matrix product: Linear, Relu, Gelu, Maxout or
// Softmax.
type weighted interface {
	forward(p *Pass, x Tensor, j joint) (Tensor, Backprop)
}

// joins reports whether l may leave its gradient mask to the layer after it. With dropout
// or LayerNorm in between it may not.
func joins(p *Pass, l, after Layer) bool {
	if _, ok := p.Backend.(Fuser); !ok || !p.Train {
		return false
	}
	relu, ok := l.(*Relu)
	if !ok || relu.Normalize || relu.finish.drop.active(p) {
		return false
	}
	_, ok = after.(weighted)
	return ok
}
