package nn

// A Fuser is a Backend that does at once what a layer of weights does in several
// steps, where its products can take along what follows them, and so with the loss
// of a Classifier. Each method gives the results of the calls that it names, within
// rounding; but where Relu keeps a NaN it may give 0. w is (bias.Len(), nI).
type Fuser interface {
	// Affine is Gemm of y = x·wᵀ, AddBias of bias to y, and, if relu is set, Relu
	// of y. gate announces that ReluInputGrad will be called with y before Recycle.
	// y is neither x nor w.
	Affine(y, x, w, bias Buffer, relu, gate bool)
	// AffineGrad is SumRows of dy to db, and Gemm of dw = dyᵀ·x + dw. zeroed says that
	// dw and db are 0, and may be set.
	AffineGrad(dw, db, dy, x Buffer, zeroed bool)
	// ReluInputGrad is Gemm of dx = dy·w, then ReluGrad of dx by x with scale 1. x
	// is as Affine left it, with relu and gate set, and has as many rows as dx.
	ReluInputGrad(dx, dy, w, x Buffer, rows int)
	// SoftmaxLoss is Zero of loss, one element, Softmax of x, and CrossEntropy of that
	// to loss and x, which becomes the gradient.
	SoftmaxLoss(loss, x, labels Buffer)
}

// A joint is what a layer of weights shares with its neighbours in a chain whose
// backend is a Fuser: the gradient of a Relu is masked by the layer after it, in
// the product that gives it.
type joint struct {
	takes  bool // this layer masks the gradient by its input
	leaves bool // this layer is Relu and gets the gradient masked
}

// weighted is a layer with a product: Linear, Relu and Softmax.
type weighted interface {
	forward(p *Pass, x Tensor, j joint) (Tensor, Backprop)
}

// joins reports whether l may leave the mask of its gradient to the layer after
// it. With dropout in between it may not.
func joins(p *Pass, l, after Layer) bool {
	if _, ok := p.Backend.(Fuser); !ok || !p.Train {
		return false
	}
	relu, ok := l.(*Relu)
	if !ok || relu.drop.active(p) {
		return false
	}
	_, ok = after.(weighted)
	return ok
}
