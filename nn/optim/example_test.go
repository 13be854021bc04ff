package optim_test

import (
	"fmt"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// Gradient descent on w² with a rate that starts at 1/4 and halves each step.
func ExampleStep() {
	be, b := cpu.New(cpu.Options{}), nn.NewBuilder(1)
	w := b.Param("w", []int{1}, nn.Uniform(8, 8))
	p, err := b.Build(be)
	if err != nil {
		fmt.Println(err)
		return
	}
	o := optim.SGD{LearnRate: func(step int) float64 { return .25 / float64(int(1)<<step) }}
	state := optim.NewState(be, p, o)
	for range 3 {
		be.Zero(p.Grads)
		be.Axpy(w.Grads, 2, w.Values)
		optim.Step(o, be, p, state)
		fmt.Println(state.Step, w.Values.Float32s()[0])
	}
	// Output:
	// 1 4
	// 2 3
	// 3 2.625
}
