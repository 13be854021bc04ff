package main

import "github.com/ringtrain/ringtrain/nn"

// resnet is a residual network of three stages for colour images, after He et al., "Deep
// Residual Learning for Image Recognition", 2016. Between stages the channels double and
// the images halve.
func resnet() nn.Layer {
	return nn.Chain(
		&nn.Images{Channels: 3}, &nn.Standardize{Mean: .5, Deviation: .25},
		convolution(8, 1), block(8),
		convolution(16, 2), block(16),
		convolution(32, 2), block(32),
		&nn.AvgPool2D{}, &nn.Softmax{},
	)
}

// convolution is a normalised convolution with a Relu.
func convolution(channels, stride int) nn.Layer {
	return nn.Chain(&nn.Conv2D{Out: channels, Size: 3, Stride: stride, Padding: 1}, &nn.BatchNorm2D{}, &nn.Rectify{})
}

// block is x + f(x), where f is two convolutions.
func block(channels int) nn.Layer {
	return nn.Residual(nn.Chain(
		convolution(channels, 1),
		&nn.Conv2D{Out: channels, Size: 3, Padding: 1}, &nn.BatchNorm2D{},
	))
}
