package nn

// An inputChecker is a layer that does not take every batch of the right shape, or that
// passes its input on to other layers.
type inputChecker interface {
	checkInput(x Tensor) error
}

// CheckInput returns an error if a batch has values that l cannot take, such as an id that
// [Embed] has no vector for. A model calls it before the first kernel. Values in device
// memory are not checked; the code that puts them there does that.
func CheckInput(l Layer, x Tensor) error {
	if c, ok := l.(inputChecker); ok {
		return c.checkInput(x)
	}
	return nil
}

func (c *chain) checkInput(x Tensor) error {
	if len(c.layers) == 0 {
		return nil
	}
	return CheckInput(c.layers[0], x)
}

func (l *residual) checkInput(x Tensor) error { return CheckInput(l.layer, x) }

func (l *eachPosition) checkInput(x Tensor) error { return CheckInput(l.layer, x) }
