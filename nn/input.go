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

// checkNumbers returns an error if l takes ids, where a model has rows of numbers of shape in.
func checkNumbers(l Layer, in []int) error {
	return CheckInput(l, Tensor{Shape: append([]int{0}, in...), Data: Host(nil)})
}

// checkIDs returns an error if the first layer of l takes numbers, where a model has ids. b
// is the scope of l. Layers of other packages may take ids.
func checkIDs(l Layer, b *Builder) error {
	var first []Layer
	switch l := l.(type) {
	case *chain:
		first = l.layers[:min(1, len(l.layers))]
	case *add:
		first = l.layers
	case *concatenate:
		first = l.layers
	case *eachPosition:
		first = []Layer{l.layer}
	case *residual, *Linear, *Relu, *Gelu, *Maxout, *Softmax, *LayerNorm, *Dropout, *Positions, *SelfAttention, *Conv2D,
		*MaxPool2D, *AvgPool2D, *BatchNorm2D, *Images, *Standardize, *Rectify, *Flatten, *Reshape, *ExpandWindow, *padded:
		return b.errorf("rows of input are ids, and only Embed takes ids; put Embed first")
	}
	for i, part := range first {
		if err := checkIDs(part, b.element(i)); err != nil {
			return err
		}
	}
	return nil
}
