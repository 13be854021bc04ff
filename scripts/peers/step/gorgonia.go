package main

import (
	"errors"
	"runtime/debug"
	"time"

	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/graph"
)

// gorgonia trains the same network with a tape machine that is compiled once, and with
// gorgonia's own solver. gonum multiplies matrices, which is gorgonia's default.
func gorgonia(m model, b *batches, c *clock) (about string, err error) {
	weights, err := initial(m)
	if err != nil {
		return "", err
	}
	solver := graph.SGD(m.rate, rows)
	if m.adam {
		solver = graph.Adam(m.rate, rows)
	}
	t, err := graph.NewTrainer(m.network, weights, m.shape, classes, solver)
	if err != nil {
		return "", err
	}
	defer t.Close()
	var xs, targets []*tensor.Dense
	for i := range count {
		x, labels := b.batch(i)
		classOf := make([]int, rows)
		for j, l := range labels {
			classOf[j] = int(l)
		}
		hot, err := graph.Targets(classOf, classes)
		if err != nil {
			return "", err
		}
		xs, targets = append(xs, tensor.New(tensor.WithShape(m.shape...), tensor.WithBacking(x))), append(targets, hot)
	}
	for i := range c.steps {
		begin := time.Now()
		loss, err := t.Step(xs[i%count], targets[i%count])
		if err != nil {
			return "", err
		}
		c.add(time.Since(begin), float64(loss)/rows)
	}
	return "gorgonia " + version("gorgonia.org/gorgonia") + ", gonum", nil
}

// initial returns ringtrain's initial weights.
func initial(m model) (graph.Weights, error) {
	be := cpu.New(cpu.Options{})
	defer be.Close()
	net, err := m.initial(be)
	if err != nil {
		return nil, err
	}
	weights := graph.Weights{}
	for _, q := range net.Params().List {
		w, err := net.Params().Weight(q.Name)
		if err != nil {
			return nil, err
		}
		if weights[q.Name] = w; m.transpose && w.Dims() == 2 {
			if err := errors.Join(w.T(), w.Transpose()); err != nil {
				return nil, err
			}
		}
	}
	return weights, nil
}

// version returns the version of a module in this program.
func version(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == module {
				return m.Version
			}
		}
	}
	return "of an unknown version"
}
