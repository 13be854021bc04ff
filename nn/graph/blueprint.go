package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// A blueprint is a graph for a number of rows. It has been checked, and nothing has run.
type blueprint struct {
	graph      *gorgonia.ExprGraph
	x, y       *gorgonia.Node
	learnables gorgonia.Nodes
}

// blueprint builds the graph for this many rows.
func (l *Layer) blueprint(rows int) (b *blueprint, err error) {
	if l.Build == nil {
		return nil, errors.New("it has no graph: Layer.Build is nil")
	}
	defer func() { // gorgonia.Must panics, and so do some mistakes that gorgonia does not check
		if r := recover(); r != nil {
			err = fmt.Errorf("building its graph for %d rows panicked: %v", rows, r)
		}
	}()
	g := gorgonia.NewGraph()
	x := gorgonia.NewTensor(g, tensor.Float32, 1+len(l.in), gorgonia.WithShape(append([]int{rows}, l.in...)...), gorgonia.WithName("x"))
	out, err := l.Build(g, x)
	if err != nil {
		return nil, fmt.Errorf("building its graph for %d rows: %w", rows, err)
	}
	b = &blueprint{g, x, out.Y, out.Learnables}
	return b, b.check(rows)
}

// check returns an error for a graph that a Layer cannot use.
func (b *blueprint) check(rows int) error {
	switch {
	case b.y == nil || b.y.Graph() != b.graph:
		return errors.New("its Output.Y must be a node of the graph")
	case b.y.Dtype() != tensor.Float32:
		return fmt.Errorf("its output is of %v; it must be float32", b.y.Dtype())
	case b.y.Dims() < 2 || b.y.Shape()[0] != rows:
		return fmt.Errorf("its output has shape %v for an input of %d rows; it must be (%d, ...)", b.y.Shape(), rows, rows)
	}
	seen := map[string]bool{"": true}
	for _, n := range b.learnables {
		switch {
		case n == nil || n.Graph() != b.graph || !n.IsVar() || n == b.x:
			return fmt.Errorf("its learnable %v must be a variable of the graph, made with gorgonia.NewTensor or the like", n)
		case seen[n.Name()] || strings.Contains(n.Name(), "."):
			return fmt.Errorf("its learnable %q must have a name of its own, without a dot: use gorgonia.WithName", n.Name())
		case n.Dtype() != tensor.Float32:
			return fmt.Errorf("its learnable %s is of %v; it must be float32", n.Name(), n.Dtype())
		case n.Dims() == 0:
			return fmt.Errorf("its learnable %s is a scalar, which is not supported; use a vector of one element", n.Name())
		}
		seen[n.Name()] = true
	}
	for _, n := range b.graph.AllNodes() {
		if err := unsupported(n); err != nil {
			return err
		}
	}
	return b.noOthers()
}

// noOthers returns an error for a variable that is not a learnable and has no value.
func (b *blueprint) noOthers() error {
	for _, n := range b.graph.AllNodes() {
		if n.IsVar() && n != b.x && n.Value() == nil && !slices.Contains(b.learnables, n) {
			return fmt.Errorf("its variable %s has no value: add it to Output.Learnables, or give it a value with gorgonia.WithValue", n.Name())
		}
	}
	return nil
}

// unsupported returns an error for a node whose results depend on more than its inputs.
func unsupported(n *gorgonia.Node) error {
	kind := fmt.Sprintf("%T", n.Op())
	switch _, kind, _ = strings.Cut(kind, "."); kind {
	case "randomOp":
		return fmt.Errorf("its node %s draws random numbers with a seed from the clock, which is not supported", n.Name())
	case "dropoutOp":
		return errors.New("gorgonia.Dropout takes its seed from the clock, which is not supported; end the graph before it, and use the layer Dropout.v1")
	case "BatchNormOp":
		return errors.New("gorgonia.BatchNorm keeps statistics of this rank's rows alone, which is not supported; end the graph before it, and use the layer BatchNorm2D.v1")
	}
	return nil
}

// differs returns an error if the learnables of two graphs of a layer differ, or a row of
// their results.
func (b *blueprint) differs(c *blueprint) error {
	if !slices.Equal(b.y.Shape()[1:], c.y.Shape()[1:]) {
		return fmt.Errorf("a row of its output has shape %v in a batch of 2 rows, but %v in one of 3", b.y.Shape()[1:], c.y.Shape()[1:])
	}
	if len(b.learnables) != len(c.learnables) {
		return fmt.Errorf("it has %d learnables in a batch of 2 rows, but %d in one of 3", len(b.learnables), len(c.learnables))
	}
	for i, n := range b.learnables {
		m := c.learnables[i]
		switch {
		case n.Name() != m.Name() || !n.Shape().Eq(m.Shape()):
			return fmt.Errorf("its learnable %d is %s %v in a batch of 2 rows, but %s %v in one of 3", i, n.Name(), n.Shape(), m.Name(), m.Shape())
		case n.Value() != nil && m.Value() != nil && !slices.Equal(floats(n.Value()), floats(m.Value())):
			return fmt.Errorf("its learnable %s has other values each time it is built: leave out gorgonia.WithInit, and the training draws them from its seed", n.Name())
		}
	}
	return nil
}

// floats returns a copy of the elements of a float32 value in row-major order.
func floats(v gorgonia.Value) []float32 {
	d, ok := v.(*tensor.Dense)
	if !ok {
		f, _ := v.Data().(float32)
		return []float32{f}
	}
	if d.RequiresIterator() || d.DataOrder().IsColMajor() {
		if m, ok := d.Materialize().(*tensor.Dense); ok {
			d = m
		}
	}
	switch data := d.Data().(type) {
	case []float32:
		return slices.Clone(data)
	case float32:
		return []float32{data}
	}
	return nil
}
