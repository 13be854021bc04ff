package sgd_test

import (
	"context"
	"fmt"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/sgd"
)

// Two workers of two devices each train on 32 rows of their own, which never change.
func Example() {
	images, _ := data.Generate(data.DigitsOptions{Train: 128, Test: 1, Side: 12})
	create := func(_ context.Context, worker, device int) (*sgd.Replica, error) {
		b := cpu.New(cpu.Options{})
		model, err := nn.NewClassifier(b, models.ReluReluSoftmax(32, 0), []int{images.Features()}, images.Classes, 1)
		if err != nil {
			return nil, err
		}
		first := 32 * (2*worker + device)
		rows, err := images.Stage(32, b)(data.Range(nil, first, first+32))
		return &sgd.Replica{Backend: b, Task: trainer.NewTask(model, sgd.Fixed(rows), nil), Optimizer: optim.DefaultAdam()}, err
	}
	ctx := context.Background()
	s, err := sgd.New(ctx, create, sgd.Options{Workers: 2, Devices: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	for range 100 {
		r, err := s.Step(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		if r.Step%50 == 0 {
			fmt.Printf("step %d: %d rows, loss below 0.5: %v\n", r.Step, r.Rows, r.Loss < .5)
		}
	}
	weights, err := s.Weights(ctx)
	fmt.Println(weights[0].Name, weights[0].Tensor.Shape(), err)
	// Output:
	// step 50: 128 rows, loss below 0.5: false
	// step 100: 128 rows, loss below 0.5: true
	// layers.0.W (32, 144) <nil>
}
