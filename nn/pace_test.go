package nn_test

import (
	"context"
	"fmt"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// A step that reads its rows, hyper-parameters and dropout state from the backend's memory can
// be recorded once and repeated. On a GPU each repetition is one launch.
func ExamplePacer() {
	b := cpu.New(cpu.Options{})
	defer b.Close()
	fmt.Println(learnTwoClasses(b))
	// Output:
	// the loss falls: true
}

func learnTwoClasses(b nn.Pacer) string {
	const rows, features, batch = 4, 2, 2
	m, err := nn.NewClassifier(b, models.ReluReluSoftmax(8, .1), []int{features}, 2, 1)
	if err != nil {
		return err.Error()
	}
	o, p := optim.DefaultAdam(), m.Params()
	o.LearnRate = optim.Constant(.05)
	state := optim.NewState(b, p, o)
	pace := b.NewPace(nn.PaceConfig{
		Random: nn.Stream{Seed: 1},
		Hyper:  func(step int) [nn.HyperLen]float32 { h, _ := o.Hyper(step); return h },
	})
	_, form := o.Hyper(0)

	data, classes, order := b.Alloc(rows*features), b.AllocInts(rows), b.AllocInts(rows)
	b.Copy(data, []float32{1, 0, 0, 1, 1, .1, .1, 1})
	b.CopyInts(classes, []int32{0, 1, 0, 1})
	b.CopyInts(order, []int32{0, 1, 2, 3})
	x, labels := b.Alloc(batch*features), b.AllocInts(batch)
	step := func() error {
		pace.Gather(x, data, order, features)
		pace.Gather(labels, classes, order, 1)
		loss, weight, err := m.Learn(&nn.Pass{Backend: b, Train: true, Random: pace.Random()},
			nn.Batch{X: nn.Tensor{Shape: []int{batch, features}, Data: x}, Labels: labels})
		if err != nil {
			return err
		}
		form.Spend(b, p, state, pace.Hyper(), 1/float32(weight))
		pace.Tick(loss, batch)
		return nil
	}
	const epochs, each = 50, rows / batch // each is the steps per epoch, all in one recording
	replay, err := b.Record("an epoch", func() error {
		for range each {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
	for epoch := 1; epoch < epochs && err == nil; epoch++ {
		pace.Seek(pace.Step(), 0)
		err = replay()
	}
	losses := make([]float32, each*epochs)
	if err == nil {
		err = pace.Losses(context.Background(), 0, losses)
	}
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint("the loss falls: ", losses[len(losses)-1] < losses[0]/10)
}
