// Package nn describes neural networks independently of the hardware that runs them.
//
// A [Layer] is a function with parameters. Its Forward returns the result and a
// [Backprop] that carries the gradient back, so a layer keeps no state between calls. A
// [Model] adds a loss. A [Backend] provides memory and arithmetic; package nn/cpu is the
// reference.
//
// The parameters of a model lie in two arenas, Values and Grads of [Params], in the order
// in which the layers declared them. That is forward order, so a backward pass finishes
// gradients from the end of the arena towards its beginning, and a trainer can start to
// exchange them before the pass ends (see [Pass]).
//
// Randomness is counter-based: a number is a function of the seed, the step, the layer,
// the row in the global batch and the column. It does not depend on which worker computes
// it, or when. Initial weights depend only on the seed and the parameter's name.
//
// A row of a batch may have any shape. Layers with weights read it as one vector, unless
// [EachPosition] applies them to each position of a sequence. [Chain], [Residual], [Add],
// [Concatenate] and [Clone] combine layers, and nest.
//
// Layers, initial weights and names follow Thinc (https://github.com/explosion/thinc): W
// is (nO, nI), products are X·Wᵀ + b. Layers for images and attention follow PyTorch: a row
// is (channels, height, width), filters are (out, channels, height, width).
package nn
