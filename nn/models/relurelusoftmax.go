package models

import "github.com/ringtrain/ringtrain/nn"

// ReluReluSoftmax is relu_relu_softmax.v1 of Thinc's MNIST example: two [nn.Relu] layers
// of hiddenWidth with dropout, then [nn.Softmax] over the classes of the data. Its
// parameters are layers.0.W (hiddenWidth, nI), layers.1.W and layers.2.W, each with its
// b. Building a model fails if hiddenWidth is below 1 or dropout is outside [0, 1).
func ReluReluSoftmax(hiddenWidth int, dropout float32) nn.Layer {
	return nn.Chain(
		&nn.Relu{Out: hiddenWidth, Dropout: dropout},
		&nn.Relu{Out: hiddenWidth, Dropout: dropout},
		&nn.Softmax{},
	)
}
