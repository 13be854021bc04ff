package graph

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/nn"
)

// A Layer is an nn.Layer that a graph of gorgonia computes. Its learnables are parameters
// of the model, so they are trained, saved and summed over ranks like all others.
//
// Gorgonia computes in the memory of the host. On a GPU, a Layer copies its input, output
// and parameters in every step, and steps that contain it cannot be recorded. Because the
// graph of the output and that of the gradients are separate programs, a training step
// computes the output twice.
type Layer struct {
	// Build adds a graph to g. The layer calls it for each number of rows that it meets,
	// and the learnables must be the same each time.
	Build func(g *gorgonia.ExprGraph, x *gorgonia.Node) (Output, error)

	path     string // in the model
	in, out  []int  // shapes of a row
	params   []*nn.Param
	carries  bool // the gradient of the input is needed
	programs map[int]*program
}

// An Output is a graph that Build has made for an input x of shape (rows, ...), float32.
type Output struct {
	Y *gorgonia.Node // (rows, ...), float32
	// Learnables are what the layer learns: vectors, matrices and so on of float32, with
	// names that differ. One without a value begins with zeros if it is a vector, and
	// otherwise with random numbers, which depend on the seed of the training:
	// nn.GlorotUniform for matrices, nn.FanInUniform for more dimensions. Gorgonia's own
	// random initializers are refused, because they take their seed from the clock.
	Learnables gorgonia.Nodes
}

var _ nn.Layer = (*Layer)(nil)

// Init implements nn.Layer. It builds the graph, and runs it once with zeros, to find what
// gorgonia cannot build, differentiate or run. The error names the node.
func (l *Layer) Init(in, out []int, b *nn.Builder) ([]int, error) {
	if l.programs != nil {
		return nil, l.errorf("the layer already belongs to a model; make a new layer for each place")
	}
	l.path, l.in, l.carries, l.programs = b.Path(), slices.Clone(in), b.NeedsInputGradient(), map[int]*program{}
	b.OnHost()
	first, err := l.blueprint(2)
	if err != nil {
		return nil, l.errorf("%v", err)
	}
	second, err := l.blueprint(3)
	if err == nil {
		err = first.differs(second)
	}
	if err != nil {
		return nil, l.errorf("%v", err)
	}
	l.out = slices.Clone(first.y.Shape()[1:])
	if out != nil && !slices.Equal(out, l.out) {
		return nil, l.errorf("its graph makes rows of shape %v, but %v is needed here; change the graph", l.out, out)
	}
	for _, n := range first.learnables {
		l.params = append(l.params, b.Param(n.Name(), n.Shape(), initializer(n)))
	}
	return l.out, l.rehearse()
}

// initializer returns what sets the first values of a learnable.
func initializer(n *gorgonia.Node) nn.Initializer {
	switch {
	case n.Value() != nil:
		return func(values []float32, _ []int, _ *nn.Draws) { copy(values, floats(n.Value())) }
	case n.Dims() == 1:
		return nn.Zeros
	case n.Dims() == 2:
		return nn.GlorotUniform
	}
	return nn.FanInUniform
}

// rehearse runs the graph on zeros.
func (l *Layer) rehearse() error {
	const rows = 2
	p, err := l.program(rows)
	if err != nil {
		return err
	}
	for _, v := range p.weights() {
		clear(v)
	}
	if _, err := p.forward(make([]float32, rows*product(l.in))); err != nil {
		return l.errorf("%v", err)
	}
	if _, _, err := p.backward(make([]float32, rows*product(l.in)), make([]float32, rows*product(l.out))); err != nil {
		return l.errorf("%v", err)
	}
	return nil
}

// Forward implements nn.Layer.
func (l *Layer) Forward(p *nn.Pass, x nn.Tensor) (nn.Tensor, nn.Backprop) {
	b, rows := p.Backend, x.Rows()
	y := nn.Tensor{Shape: append([]int{rows}, l.out...), Data: b.Temp(rows * product(l.out)), Lengths: x.Lengths}
	if rows == 0 { // gorgonia has no graphs without elements
		return y, func(nn.Tensor) nn.Tensor { return l.gradient(b, x, nil) }
	}
	input := make([]float32, x.Data.Len())
	b.Read(input, x.Data)
	g, err := l.load(b, rows)
	if err == nil {
		var values []float32
		if values, err = g.forward(input); err == nil {
			b.Copy(y.Data, values)
		}
	}
	if err != nil {
		b.Zero(y.Data)
		b.Fail(err)
	}
	return y, func(dy nn.Tensor) nn.Tensor { return l.back(p, x, input, dy) }
}

// back is the Backprop of Forward.
func (l *Layer) back(p *nn.Pass, x nn.Tensor, input []float32, dy nn.Tensor) nn.Tensor {
	b, rows := p.Backend, x.Rows()
	slope := make([]float32, dy.Data.Len())
	b.Read(slope, dy.Data)
	g, err := l.load(b, rows)
	var grads [][]float32
	var dx []float32
	if err == nil {
		grads, dx, err = g.backward(input, slope)
	}
	if err != nil {
		b.Fail(err)
		grads, dx = nil, make([]float32, len(input))
	}
	for i, grad := range grads {
		t := b.Temp(len(grad))
		b.Copy(t, grad)
		if p.Zeroed {
			b.Rescale(l.params[i].Grads, t, 1, 0)
		} else {
			b.Axpy(l.params[i].Grads, 1, t)
		}
	}
	if p.Final != nil && len(l.params) > 0 {
		p.Final(l.params[0].Offset)
	}
	return l.gradient(b, x, dx)
}

// gradient returns dx as a Tensor like x, or the zero Tensor if nothing needs it.
func (l *Layer) gradient(b nn.Backend, x nn.Tensor, dx []float32) nn.Tensor {
	if !l.carries {
		return nn.Tensor{}
	}
	t := nn.Tensor{Shape: slices.Clone(x.Shape), Data: b.Temp(len(dx)), Lengths: x.Lengths}
	b.Copy(t.Data, dx)
	return t
}

// load returns the program for this many rows, with the values that the parameters have.
func (l *Layer) load(b nn.Backend, rows int) (*program, error) {
	p, err := l.program(rows)
	if err != nil {
		return nil, err
	}
	for i, v := range p.weights() {
		b.Read(v, l.params[i].Values)
	}
	return p, nil
}

// mostPrograms bounds the number of programs that a Layer keeps. A program is for one number of
// rows, and documents have a different number of words in each batch.
const mostPrograms = 64

// program returns the program for this many rows, which it makes if it has none.
func (l *Layer) program(rows int) (*program, error) {
	if p := l.programs[rows]; p != nil {
		return p, nil
	}
	if len(l.programs) >= mostPrograms {
		for _, p := range l.programs {
			p.close()
		}
		clear(l.programs)
	}
	f, err := l.blueprint(rows)
	if err != nil {
		return nil, l.errorf("%v", err)
	}
	g, err := l.blueprint(rows)
	if err != nil {
		return nil, l.errorf("%v", err)
	}
	p, err := compile(f, g, l.carries)
	if err != nil {
		return nil, l.errorf("%v", err)
	}
	l.programs[rows] = p
	return p, nil
}

// errorf returns an error that names the layer.
func (l *Layer) errorf(format string, args ...any) error {
	return &nn.LayerError{Path: l.path, Msg: fmt.Sprintf(format, args...)}
}

// product returns the number of elements of a shape.
func product(shape []int) int { return tensor.Shape(shape).TotalSize() }
