package nn

// TakesDocuments says that rows of the model's input are the tokens of documents, with
// [Tensor.Lengths]. Layers that let tokens see their neighbours refuse other rows, which must
// not depend on each other.
func (b *Builder) TakesDocuments() { b.plans.documents = true }

// tokens checks that rows of shape in are vectors of tokens.
func (b *Builder) tokens(layer string, in []int) error {
	switch {
	case !b.plans.documents:
		return b.errorf("%s lets rows see their neighbours, so rows must be the tokens of documents, but the model has independent rows; leave it out", layer)
	case len(in) != 1 || in[0] < 1:
		return b.errorf("rows of input have shape %v, but %s takes vectors", in, layer)
	}
	return nil
}
