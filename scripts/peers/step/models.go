package main

import (
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/graph"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// A model is one of the two that are trained, as ringtrain and as gorgonia have
// it.
type model struct {
	name      string
	layers    nn.Layer
	optimizer optim.Optimizer
	adam      bool    // gorgonia's, else plain gradient descent
	rate      float64 // gorgonia's
	shape     []int   // of gorgonia's batch
	network   graph.Network
	transpose bool // network has matrices the other way round
}

const (
	hidden  = 128
	dropout = .2
	seed    = 1 // of the initial weights, which are ringtrain's for all programs, and of its dropout
)

// modelNames are in the order of the table, and of the weights in a file.
var modelNames = []string{"mlp", "convnet"}

// modelNamed makes a model, with layers of its own.
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

// initial is ringtrain's model with the weights that all begin with.
func (m model) initial(be nn.Backend) (*nn.Classifier, error) {
	return nn.NewClassifier(be, m.layers, []int{features}, classes, seed)
}
