// Package nn describes neural networks apart from the hardware that runs them.
//
// A [Layer] is a function with parameters; its Forward returns the result and
// the [Backprop] that carries a gradient the other way, so a layer keeps no
// state between calls. A [Model] adds a loss. Arithmetic and memory belong to a
// [Backend]; package nn/cpu is the reference.
//
// The parameters of a model lie in two arenas, [Params] Values and Grads, in
// the order in which the layers declared them. Forward order is arena order,
// so a backward pass finishes gradients from the end of the arena towards its
// beginning, and whoever exchanges gradients can start before it ends (see
// [Pass]).
//
// Randomness is counter-based: a number is a function of the seed, the step,
// the layer, the row of the global batch and the column, never of who computes
// it or when. Initial weights depend on the seed and the parameter's name only.
//
// Layers, initial weights and names follow Thinc
// (https://github.com/explosion/thinc): W is (nO, nI), products are X·Wᵀ + b.
// Layers for images follow PyTorch: a row is (channels, height, width), filters
// are (out, channels, height, width).
package nn
