package main

import (
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/nn/graph"
)

// highway is y = t·relu(x·w + b) + (1-t)·x with the gate t = sigmoid(x·v + c). Rows are
// vectors.
func highway(g *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
	n := x.Shape()[1]
	w, b := matrix(g, "w", n), vector(g, "b", n)
	v, c := matrix(g, "v", n), vector(g, "c", n)
	h := gorgonia.Must(gorgonia.Rectify(affine(x, w, b)))
	t := gorgonia.Must(gorgonia.Sigmoid(affine(x, v, c)))
	change := gorgonia.Must(gorgonia.HadamardProd(t, gorgonia.Must(gorgonia.Sub(h, x)))) // t·(h - x)
	y, err := gorgonia.Add(x, change)
	return graph.Output{Y: y, Learnables: gorgonia.Nodes{w, b, v, c}}, err
}

// affine is x·w + b.
func affine(x, w, b *gorgonia.Node) *gorgonia.Node {
	return gorgonia.Must(gorgonia.BroadcastAdd(gorgonia.Must(gorgonia.Mul(x, w)), b, nil, []byte{0}))
}

func matrix(g *gorgonia.ExprGraph, name string, n int) *gorgonia.Node {
	return gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(n, n), gorgonia.WithName(name))
}

func vector(g *gorgonia.ExprGraph, name string, n int) *gorgonia.Node {
	return gorgonia.NewVector(g, tensor.Float32, gorgonia.WithShape(n), gorgonia.WithName(name))
}
