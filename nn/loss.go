package nn

// A ClassLoss is a loss of class probabilities. It calls only methods of a Backend, so it
// runs wherever the model does.
type ClassLoss interface {
	// OfClasses adds to loss[0] the loss of all rows. Row i of p has the probabilities of
	// the classes, and labels[i], an int32, is the right one. Unless dlogits is empty, it
	// sets dlogits to the gradient with respect to the logits, of which p is the softmax.
	// There may be no rows.
	OfClasses(b Backend, dlogits, loss, p, labels Buffer)
}

// A ValueLoss is a loss of predicted numbers. Like a ClassLoss it calls only methods of a
// Backend.
type ValueLoss interface {
	// OfValues adds to loss[0] the loss of all elements of y, given their targets t. Unless
	// dy is empty, it sets dy to the gradient with respect to y. There may be no elements.
	OfValues(b Backend, dy, loss, y, t Buffer)
}

// CrossEntropy is the negative logarithm of the probability of the right class. With
// Smoothing, the right class should have the probability 1-Smoothing, and the others
// should share the rest equally (Szegedy et al., 2016), as with label_smoothing in Thinc.
// PyTorch's label_smoothing x gives the same loss as Smoothing = x·(1 - 1/classes).
type CrossEntropy struct {
	Smoothing float32 // at least 0 and below 1 - 1/classes
}

// OfClasses implements ClassLoss.
func (l CrossEntropy) OfClasses(b Backend, dlogits, loss, p, labels Buffer) {
	if l.Smoothing == 0 {
		b.CrossEntropy(dlogits, loss, p, labels)
		return
	}
	b.SmoothedCrossEntropy(dlogits, loss, p, labels, l.Smoothing)
}

// SquaredError is half the squared error. Its gradient is that of Thinc's L2Distance.
type SquaredError struct{}

// OfValues implements ValueLoss.
func (SquaredError) OfValues(b Backend, dy, loss, y, t Buffer) { b.SquaredError(dy, loss, y, t) }

// HuberError is half the squared error up to Delta, which must be above 0, and grows
// linearly beyond it, so that outliers count less (Huber, 1964). It equals PyTorch's
// HuberLoss.
type HuberError struct{ Delta float32 }

// OfValues implements ValueLoss.
func (l HuberError) OfValues(b Backend, dy, loss, y, t Buffer) { b.HuberError(dy, loss, y, t, l.Delta) }

// AbsoluteError is the absolute error, PyTorch's L1Loss.
type AbsoluteError struct{}

// OfValues implements ValueLoss.
func (AbsoluteError) OfValues(b Backend, dy, loss, y, t Buffer) { b.AbsoluteError(dy, loss, y, t) }

// isPlain reports whether a loss, which may be nil, is cross-entropy without smoothing.
func isPlain(l ClassLoss) bool { return l == nil || l == CrossEntropy{} }

// isSquared reports whether a loss, which may be nil, is the squared error.
func isSquared(l ValueLoss) bool { return l == nil || l == SquaredError{} }
