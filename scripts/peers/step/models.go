package main

import (
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/graph"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// A model is one of the two to train, in ringtrain's form and in gorgonia's.
type model struct {
	name      string
	layers    nn.Layer
	optimizer optim.Optimizer
	adam      bool    // gorgonia's solver is Adam, not plain gradient descent
	rate      float64 // gorgonia's learning rate
	shape     []int   // of gorgonia's batch
	network   graph.Network
	transpose bool // network has transposed matrices
}

const (
	hidden  = 128
	dropout = .2
	seed    = 1 // of ringtrain's dropout, and of the initial weights of all programs
)

// modelNames has the order of the table, and of the weights in a file.
var modelNames = []string{"mlp", "convnet"}

// modelNamed makes a model with its own layers.
func modelNamed(name string) (model, bool) {
	switch name {
	case "mlp":
		return model{
			name: name, layers: models.ReluReluSoftmax(hidden, dropout), optimizer: optim.DefaultAdam(),
			adam: true, rate: .001, shape: []int{rows, features},
			network: graph.DroppingReluReluSoftmax(dropout), transpose: true,
		}, true
	case "convnet":
		sgd := optim.DefaultSGD(.01)
		sgd.GradClip, sgd.UseAverages = optim.Constant(0), false
		return model{
			name: name, layers: models.ConvNet(), optimizer: sgd,
			rate: .01, shape: []int{rows, 1, side, side}, network: graph.ConvNet,
		}, true
	}
	return model{}, false
}

// initial returns ringtrain's model with the initial weights of all programs.
func (m model) initial(be nn.Backend) (*nn.Classifier, error) {
	return nn.NewClassifier(be, m.layers, []int{features}, classes, seed)
}
