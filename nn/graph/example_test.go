package graph_test

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/graph"
)

// A bilinear layer, y = (x·u) ⊙ (x·v), between layers of nn.
func ExampleLayer() {
	bilinear := &graph.Layer{Build: func(g *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
		in := x.Shape()[1]
		u := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(in, 8), gorgonia.WithName("u"))
		v := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(in, 8), gorgonia.WithName("v"))
		y, err := gorgonia.HadamardProd(gorgonia.Must(gorgonia.Mul(x, u)), gorgonia.Must(gorgonia.Mul(x, v)))
		return graph.Output{Y: y, Learnables: gorgonia.Nodes{u, v}}, err
	}}
	builder := nn.NewBuilder(1)
	out, err := nn.Chain(&nn.Linear{Out: 16}, bilinear, &nn.Linear{Out: 3}).Init([]int{4}, []int{3}, builder)
	fmt.Println(out, err)
	for _, p := range builder.Declared() {
		fmt.Println(p.Name, p.Shape)
	}
	// Output:
	// [3] <nil>
	// layers.0.W [16 4]
	// layers.0.b [16]
	// layers.1.u [16 8]
	// layers.1.v [16 8]
	// layers.2.W [3 8]
	// layers.2.b [3]
}
