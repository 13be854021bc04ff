package graph

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// A Trainer trains a network by gorgonia alone: its tape machine, its gradients
// and one of its solvers. The graph is built and compiled once, and then run for
// each step, as programs that use gorgonia do.
type Trainer struct {
	machine          gorgonia.VM
	x, targets, cost *gorgonia.Node
	params           []gorgonia.ValueGrad
	solver           gorgonia.Solver
}

// NewTrainer makes a Trainer of batches with the given shape, rows first. It
// changes w in place. Only one goroutine uses it, and Close frees it.
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
		return nil, fmt.Errorf("graph: differentiate: %w", err)
	}
	t.params = gorgonia.NodesToValueGrads(wrt)
	t.machine = gorgonia.NewTapeMachine(b.graph, gorgonia.BindDualValues(wrt...))
	return t, nil
}

// crossEntropyOf is crossEntropy unless there was an error before.
func (b *Builder) crossEntropyOf(logits, targets *gorgonia.Node) *gorgonia.Node {
	if b.err != nil {
		return nil
	}
	return b.crossEntropy(logits, targets)
}

// Step makes one step on a batch, targets as from Targets, and returns the sum
// of the loss over its rows, before the step.
func (t *Trainer) Step(x, targets *tensor.Dense) (loss float32, err error) {
	if err := gorgonia.Let(t.x, x); err != nil {
		return 0, fmt.Errorf("graph: %w", err)
	}
	if err := gorgonia.Let(t.targets, targets); err != nil {
		return 0, fmt.Errorf("graph: %w", err)
	}
	if err := t.machine.RunAll(); err != nil {
		return 0, fmt.Errorf("graph: run: %w", err)
	}
	loss, ok := t.cost.Value().Data().(float32)
	if !ok {
		return 0, fmt.Errorf("graph: the loss is %T, want one float32", t.cost.Value().Data())
	}
	if err := t.solver.Step(t.params); err != nil { // it zeroes the gradients
		return 0, fmt.Errorf("graph: update: %w", err)
	}
	t.machine.Reset()
	return loss, nil
}

// Close frees the machine.
func (t *Trainer) Close() error { return t.machine.Close() }

// Targets returns a row for each label with a 1 at its class.
func Targets(labels []int, classes int) (*tensor.Dense, error) { return oneHot(labels, classes) }

// Adam is gorgonia's Adam for the mean over a batch of so many rows.
func Adam(rate float64, rows int) gorgonia.Solver {
	return gorgonia.NewAdamSolver(gorgonia.WithLearnRate(rate), gorgonia.WithBatchSize(float64(rows)))
}

// SGD is gorgonia's plain gradient descent for the mean over a batch of so many
// rows.
func SGD(rate float64, rows int) gorgonia.Solver {
	return gorgonia.NewVanillaSolver(gorgonia.WithLearnRate(rate), gorgonia.WithBatchSize(float64(rows)))
}

// DroppingReluReluSoftmax is models.ReluReluSoftmax as one writes it for
// gorgonia: dropout is gorgonia's, which draws its own random numbers, and each
// W is (inputs, outputs), which saves a transposition at every step.
func DroppingReluReluSoftmax(dropout float64) Network {
	return func(b *Builder, x *gorgonia.Node) *gorgonia.Node {
		h := b.Dropout(b.Rectify(b.Affine("layers.0", x)), dropout)
		h = b.Dropout(b.Rectify(b.Affine("layers.1", h)), dropout)
		return b.Affine("layers.2", h)
	}
}

// Affine is Linear of rows of x with a path.W of (inputs, outputs).
func (b *Builder) Affine(path string, x *gorgonia.Node) *gorgonia.Node {
	w, bias := b.param(path+".W"), b.param(path+".b")
	y := b.apply(x, func() (*gorgonia.Node, error) { return gorgonia.Mul(x, w) })
	return b.apply(y, func() (*gorgonia.Node, error) { return gorgonia.BroadcastAdd(y, bias, nil, []byte{0}) })
}

// Dropout is gorgonia's dropout, which is for speed rather than as a second
// opinion: in v0.9.18 its backward pass divides by probability and not, as the
// forward pass, by 1-probability, so gradients below it are too large at .2 and 0
// at 0. Adam mostly makes up for it. With 0 there is none here.
func (b *Builder) Dropout(x *gorgonia.Node, probability float64) *gorgonia.Node {
	if probability == 0 {
		return x
	}
	return b.apply(x, func() (*gorgonia.Node, error) { return gorgonia.Dropout(x, probability) })
}
