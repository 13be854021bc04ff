package models_test

import (
	"fmt"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
)

// The network of Thinc's MNIST example.
func ExampleReluReluSoftmax() {
	m, err := nn.NewClassifier(cpu.New(cpu.Options{}), models.ReluReluSoftmax(128, .2), []int{784}, 10, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, q := range m.Params().List {
		fmt.Println(q.Name, q.Shape)
	}
	fmt.Println(m.Params().Count(), "parameters")
	// Output:
	// layers.0.W [128 784]
	// layers.0.b [128]
	// layers.1.W [128 128]
	// layers.1.b [128]
	// layers.2.W [10 128]
	// layers.2.b [10]
	// 118282 parameters
}
