package models

import "github.com/ringtrain/ringtrain/nn"

// ConvNet is the small network for MNIST of Ray's parameter server example: a
// convolution with 3 filters of 3 by 3, the largest of every 3 by 3, relu, and
// [nn.Softmax] over the classes of the data, all with PyTorch's initial weights.
// It takes square images of one channel, as plain rows or as images, with pixels
// from 0 to 1, and first standardizes them by MNIST's mean and deviation, which
// in the example is done to the data. Its parameters are layers.2.W (3, 1, 3, 3)
// and layers.5.W (classes, nI), each with its b; for images of 28 by 28 and ten
// classes they have 1960 elements.
//
// Cross-entropy of a softmax, which [nn.Classifier] computes, is the example's
// log_softmax with nll_loss, but for the mean, which is the trainer's.
func ConvNet() nn.Layer {
	return nn.Chain(
		&nn.Images{},
		&nn.Standardize{Mean: .1307, Deviation: .3081},
		&nn.Conv2D{Out: 3, Size: 3},
		&nn.MaxPool2D{Size: 3},
		&nn.Rectify{},
		&nn.Softmax{InitW: nn.FanInUniform, InitB: nn.FanInUniform},
	)
}
