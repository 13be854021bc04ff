package models

import "github.com/ringtrain/ringtrain/nn"

// ConvNet is the small MNIST network of Ray's parameter server example: a convolution
// with three 3×3 filters, 3×3 max-pooling, relu, and [nn.Softmax] over the classes of the
// data, all with PyTorch's initial weights. It takes square images with one channel, as
// plain rows or as images, with pixels from 0 to 1. It first standardizes them with
// MNIST's mean and deviation, which the example does when it loads the data. Its
// parameters are layers.2.W (3, 1, 3, 3) and layers.5.W (classes, nI), each with its b;
// they have 1960 elements for 28×28 images and ten classes.
//
// The cross-entropy of a softmax, which [nn.Classifier] computes, equals the example's
// log_softmax with nll_loss, except for the mean, which the trainer takes.
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
