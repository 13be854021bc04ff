package nn

// Clone is a Chain of n layers from one constructor; Thinc's clone.v1. Each copy has its
// own parameters, in the scope "layers.i". The constructor returns a new layer each time,
// because a layer belongs to one place in one model.
func Clone(n int, layer func() Layer) Layer {
	var layers []Layer
	for range n {
		layers = append(layers, layer())
	}
	return Chain(layers...)
}
