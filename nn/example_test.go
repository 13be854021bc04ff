package nn_test

import (
	"context"
	"fmt"

	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
)

// A classifier learns exclusive or, whose classes no straight line separates.
func Example() {
	be := cpu.New(cpu.Options{})
	layers := nn.Chain(&nn.Relu{Out: 16}, &nn.Softmax{})
	m, err := nn.NewClassifier(be, layers, []int{2}, 2, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	x := []float32{0, 0, 0, 1, 1, 0, 1, 1}
	batch := nn.Batch{
		X:      nn.Tensor{Shape: []int{4, 2}, Data: nn.Host(x)},
		Labels: nn.HostInts([]int32{0, 1, 1, 0}),
	}

	const rate = .5
	p := m.Params()
	for step := range 500 {
		be.Zero(p.Grads)
		pass := &nn.Pass{Backend: be, Train: true, Random: nn.Stream{Seed: 1, Step: uint64(step)}}
		_, weight, err := m.Learn(pass, batch)
		if err != nil {
			fmt.Println(err)
			return
		}
		be.Axpy(p.Values, -rate/float32(weight), p.Grads) // plain gradient descent; package optim has better optimizers
	}

	probs, err := m.Predict(context.Background(), tensor.New(tensor.WithShape(4, 2), tensor.WithBacking(x)))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.1f\n", probs)
	// Output:
	// ⎡1.0  0.0⎤
	// ⎢0.0  1.0⎥
	// ⎢0.0  1.0⎥
	// ⎣1.0  0.0⎦
}

// Weights are read and set by name.
func ExampleParams_Weight() {
	be := cpu.New(cpu.Options{})
	m, err := nn.NewClassifier(be, nn.Chain(&nn.Softmax{}), []int{3}, 2, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	w := tensor.New(tensor.WithShape(2, 3), tensor.WithBacking([]float32{1, 2, 3, 4, 5, 6}))
	fmt.Println(m.Params().SetWeight("layers.0.W", w))
	got, err := m.Params().Weight("layers.0.W")
	fmt.Println(got.Shape(), got.Data(), err)
	_, err = m.Params().Weight("layers.1.W")
	fmt.Println(err)
	// Output:
	// <nil>
	// (2, 3) [1 2 3 4 5 6] <nil>
	// nn: no parameter "layers.1.W"; the model has layers.0.W, layers.0.b
}
