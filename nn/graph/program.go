package graph

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// A program computes the output of a Layer for one number of rows, and its gradients. Both
// machines share the memory of the weights.
type program struct {
	learnables []*tensor.Dense
	output     *machine
	gradients  *machine // of the learnables, and of the input if carries
	carries    bool
}

// A machine is a compiled graph.
type machine struct {
	vm      gorgonia.VM
	inputs  gorgonia.Nodes
	results []gorgonia.Value // what gorgonia.Read sets
}

// compile makes a program of two graphs of the same layer.
func compile(f, g *blueprint, carries bool) (p *program, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("compiling its graph panicked: %v", r)
		}
	}()
	p = &program{carries: carries}
	for _, n := range f.learnables {
		p.learnables = append(p.learnables, tensor.New(tensor.Of(tensor.Float32), tensor.WithShape(n.Shape()...)))
	}
	if p.output, err = p.machine(f, gorgonia.Nodes{f.x}, gorgonia.Nodes{f.y}); err != nil {
		return nil, err
	}
	dy := gorgonia.NewTensor(g.graph, tensor.Float32, g.y.Dims(), gorgonia.WithShape(g.y.Shape()...), gorgonia.WithName("dy"))
	product, err := gorgonia.HadamardProd(g.y, dy)
	if err != nil {
		return nil, fmt.Errorf("differentiating its graph: %w", err)
	}
	cost, err := gorgonia.Sum(product)
	if err != nil {
		return nil, fmt.Errorf("differentiating its graph: %w", err)
	}
	wrt := append(gorgonia.Nodes{}, g.learnables...)
	if carries {
		wrt = append(wrt, g.x)
	}
	grads, err := gorgonia.Grad(cost, wrt...)
	if err != nil {
		return nil, fmt.Errorf("differentiating its graph: %w", err)
	}
	p.gradients, err = p.machine(g, gorgonia.Nodes{g.x, dy}, grads)
	return p, err
}

// machine compiles a graph that computes results from inputs and the weights.
func (p *program) machine(b *blueprint, inputs, results gorgonia.Nodes) (*machine, error) {
	m := &machine{inputs: inputs, results: make([]gorgonia.Value, len(results))}
	for i, n := range results {
		gorgonia.Read(n, &m.results[i])
	}
	for i, n := range b.learnables {
		if err := gorgonia.Let(n, p.learnables[i]); err != nil {
			return nil, fmt.Errorf("its learnable %s: %w", n.Name(), err)
		}
	}
	m.vm = gorgonia.NewTapeMachine(b.graph)
	return m, nil
}

// close frees the machines.
func (p *program) close() {
	_ = p.output.vm.Close() // has nothing to report: it only drops what the machine has computed
	_ = p.gradients.vm.Close()
}

// weights returns the memory of the learnables.
func (p *program) weights() [][]float32 {
	all := make([][]float32, len(p.learnables))
	for i, d := range p.learnables {
		all[i], _ = d.Data().([]float32)
	}
	return all
}

// forward returns the output for an input.
func (p *program) forward(x []float32) ([]float32, error) {
	all, err := p.output.run(x)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// backward returns the gradients of the learnables, and that of the input or nil, for a
// gradient of the output.
func (p *program) backward(x, dy []float32) (grads [][]float32, dx []float32, err error) {
	all, err := p.gradients.run(x, dy)
	if err != nil {
		return nil, nil, err
	}
	for i, d := range p.learnables {
		if want := d.Shape().TotalSize(); len(all[i]) != want {
			return nil, nil, fmt.Errorf("gorgonia's gradient of learnable %d has %d elements instead of %d; write the graph another way", i, len(all[i]), want)
		}
	}
	if p.carries {
		dx = all[len(p.learnables)]
	}
	return all[:len(p.learnables)], dx, nil
}

// run sets the inputs, runs the graph and returns the results.
func (m *machine) run(inputs ...[]float32) (results [][]float32, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("running its graph panicked: %v", r)
		}
	}()
	for i, n := range m.inputs {
		if err := gorgonia.Let(n, tensor.New(tensor.WithShape(n.Shape()...), tensor.WithBacking(inputs[i]))); err != nil {
			return nil, fmt.Errorf("its input %s: %w", n.Name(), err)
		}
	}
	defer m.vm.Reset()
	if err := m.vm.RunAll(); err != nil {
		return nil, fmt.Errorf("running its graph: %w", err)
	}
	for i, v := range m.results {
		if v == nil {
			return nil, fmt.Errorf("running its graph: it has no result %d", i)
		}
		results = append(results, floats(v))
	}
	return results, nil
}
