package graph

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// A Trainer trains a network with gorgonia alone: its tape machine, its gradients and one
// of its solvers. Like programs that use gorgonia, it builds and compiles the graph once
// and runs it for each step.
type Trainer struct {
	machine          gorgonia.VM
	x, targets, cost *gorgonia.Node
	params           []gorgonia.ValueGrad
	solver           gorgonia.Solver
}

// NewTrainer returns a Trainer for batches of the given shape, rows first. It changes w
// in place. A Trainer belongs to one goroutine; Close frees it.
func NewTrainer(n Network, w Weights, shape []int, classes int, s gorgonia.Solver) (*Trainer, error) {
	b := &Builder{graph: gorgonia.NewGraph(), weights: w, used: map[string]*gorgonia.Node{}}
	input := func(name string, shape ...int) *gorgonia.Node {
		return gorgonia.NewTensor(b.graph, tensor.Float32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
	}
	t := &Trainer{x: input("x", shape...), targets: input("targets", shape[0], classes), solver: s}
	t.cost = b.crossEntropyOf(n(b, t.x), t.targets)
	if b.err != nil {
		return nil, b.err
	}
	var wrt gorgonia.Nodes
	for _, name := range b.names {
		wrt = append(wrt, b.used[name])
	}
	if _, err := gorgonia.Grad(t.cost, wrt...); err != nil {
		return nil, fmt.Errorf("graph: differentiating the loss: %w", err)
	}
	t.params = gorgonia.NodesToValueGrads(wrt)
	t.machine = gorgonia.NewTapeMachine(b.graph, gorgonia.BindDualValues(wrt...))
	return t, nil
}

// crossEntropyOf is crossEntropy, or nil after an earlier error.
func (b *Builder) crossEntropyOf(logits, targets *gorgonia.Node) *gorgonia.Node {
	if b.err != nil {
		return nil
	}
	return b.crossEntropy(logits, targets)
}

// Step performs one step on a batch and returns the loss before the step, summed over
// rows. Get targets from Targets.
func (t *Trainer) Step(x, targets *tensor.Dense) (loss float32, err error) {
	if err := gorgonia.Let(t.x, x); err != nil {
		return 0, fmt.Errorf("graph: %w", err)
	}
	if err := gorgonia.Let(t.targets, targets); err != nil {
		return 0, fmt.Errorf("graph: %w", err)
	}
	defer t.machine.Reset()
	if err := t.machine.RunAll(); err != nil {
		return 0, fmt.Errorf("graph: running the graph: %w", err)
	}
	loss, ok := t.cost.Value().Data().(float32)
	if !ok {
		return 0, fmt.Errorf("graph: the loss is a %T, but must be a single float32", t.cost.Value().Data())
	}
	if err := t.solver.Step(t.params); err != nil { // it zeroes the gradients
		return 0, fmt.Errorf("graph: updating the parameters: %w", err)
	}
	return loss, nil
}

// Close frees the machine.
func (t *Trainer) Close() error { return t.machine.Close() }

// Targets returns one row per label, with a 1 at the class and 0 elsewhere.
func Targets(labels []int, classes int) (*tensor.Dense, error) { return oneHot(labels, classes) }

// Adam is gorgonia's Adam for the mean over a batch of the given number of rows.
func Adam(rate float64, rows int) gorgonia.Solver {
	return gorgonia.NewAdamSolver(gorgonia.WithLearnRate(rate), gorgonia.WithBatchSize(float64(rows)))
}

// SGD is gorgonia's plain gradient descent for the mean over a batch of the given
// number of rows.
func SGD(rate float64, rows int) gorgonia.Solver {
	return gorgonia.NewVanillaSolver(gorgonia.WithLearnRate(rate), gorgonia.WithBatchSize(float64(rows)))
}

// DroppingReluReluSoftmax is models.ReluReluSoftmax in idiomatic gorgonia: it uses
// gorgonia's dropout, which draws its own random numbers, and each W is (inputs,
// outputs), which saves a transposition in every step.
func DroppingReluReluSoftmax(dropout float64) Network {
	return func(b *Builder, x *gorgonia.Node) *gorgonia.Node {
		h := b.Dropout(b.Rectify(b.Affine("layers.0", x)), dropout)
		h = b.Dropout(b.Rectify(b.Affine("layers.1", h)), dropout)
		return b.Affine("layers.2", h)
	}
}

// Affine is Linear with a path.W of shape (inputs, outputs).
func (b *Builder) Affine(path string, x *gorgonia.Node) *gorgonia.Node {
	w, bias := b.param(path+".W"), b.param(path+".b")
	y := b.apply(x, func() (*gorgonia.Node, error) { return gorgonia.Mul(x, w) })
	return b.apply(y, func() (*gorgonia.Node, error) { return gorgonia.BroadcastAdd(y, bias, nil, []byte{0}) })
}

// Dropout is gorgonia's dropout. Use it to measure speed, not to check gradients: in
// v0.9.18 its backward pass divides by probability, while the forward pass divides by
// 1-probability, so gradients below it are too large at .2 and 0 at 0. Adam mostly
// compensates for that. With probability 0 this method leaves dropout out.
func (b *Builder) Dropout(x *gorgonia.Node, probability float64) *gorgonia.Node {
	if probability == 0 {
		return x
	}
	return b.apply(x, func() (*gorgonia.Node, error) { return gorgonia.Dropout(x, probability) })
}
