package graph

import (
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Weights holds the parameters of a network, or their gradients, by name. They are
// float32 and row-major, with the shapes of nn's layers.
type Weights map[string]*tensor.Dense

// A Network computes the logits (rows, classes) of a batch x. It gets its parameters from
// the Builder by name.
type Network func(b *Builder, x *gorgonia.Node) *gorgonia.Node

// Learn returns the cross-entropy of a network's softmax, summed over rows, and the
// gradients of that sum with respect to every parameter that the network uses. x is
// (rows, ...); labels holds the class of each row.
func Learn(n Network, w Weights, x *tensor.Dense, labels []int) (loss float32, grads Weights, err error) {
	b := &Builder{graph: gorgonia.NewGraph(), weights: w, used: map[string]*gorgonia.Node{}}
	input := gorgonia.NodeFromAny(b.graph, x, gorgonia.WithName("x"))
	logits := n(b, input)
	if b.err != nil {
		return 0, nil, b.err
	}
	if len(labels) == 0 || logits.Dims() != 2 || logits.Shape()[0] != len(labels) {
		return 0, nil, fmt.Errorf("graph: got %d labels for logits of shape %v; there must be one label per row", len(labels), logits.Shape())
	}
	targets, err := oneHot(labels, logits.Shape()[1])
	if err != nil {
		return 0, nil, err
	}
	cost := b.crossEntropy(logits, gorgonia.NodeFromAny(b.graph, targets, gorgonia.WithName("targets")))
	if b.err != nil {
		return 0, nil, b.err
	}
	return b.run(cost)
}

// oneHot returns one row per label, with a 1 at the class and 0 elsewhere.
func oneHot(labels []int, classes int) (*tensor.Dense, error) {
	v := make([]float32, len(labels)*classes)
	for i, l := range labels {
		if l < 0 || l >= classes {
			return nil, fmt.Errorf("graph: row %d has label %d, but the network has classes 0 to %d", i, l, classes-1)
		}
		v[i*classes+l] = 1
	}
	return tensor.New(tensor.WithShape(len(labels), classes), tensor.WithBacking(v)), nil
}

// A Builder creates the nodes of one graph. Its methods correspond to nn's layers. After
// the first error, which Learn returns, they do nothing.
type Builder struct {
	graph   *gorgonia.ExprGraph
	weights Weights
	names   []string // in order of first use
	used    map[string]*gorgonia.Node
	err     error
}

// run differentiates cost and evaluates it together with the gradients.
func (b *Builder) run(cost *gorgonia.Node) (float32, Weights, error) {
	wrt := make(gorgonia.Nodes, len(b.names))
	for i, name := range b.names {
		wrt[i] = b.used[name]
	}
	if _, err := gorgonia.Grad(cost, wrt...); err != nil {
		return 0, nil, fmt.Errorf("graph: differentiating the loss: %w", err)
	}
	vm := gorgonia.NewTapeMachine(b.graph, gorgonia.BindDualValues(wrt...))
	defer vm.Close()
	if err := vm.RunAll(); err != nil {
		return 0, nil, fmt.Errorf("graph: running the graph: %w", err)
	}
	loss, ok := cost.Value().Data().(float32)
	if !ok {
		return 0, nil, fmt.Errorf("graph: the loss is a %T, but must be a single float32", cost.Value().Data())
	}
	grads := Weights{}
	for i, name := range b.names {
		g, err := wrt[i].Grad()
		if err != nil {
			return 0, nil, fmt.Errorf("graph: the gradient of %s: %w", name, err)
		}
		d, ok := g.(*tensor.Dense)
		if !ok {
			return 0, nil, fmt.Errorf("graph: the gradient of %s is a %T, but must be a *tensor.Dense", name, g)
		}
		if grads[name], ok = d.Clone().(*tensor.Dense); !ok {
			return 0, nil, errors.New("graph: a gradient cannot be copied")
		}
	}
	return loss, grads, nil
}
