package trainer_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// Two ranks train one model of handwritten digits. Here they are goroutines; in
// a job they are processes, and collective/cluster makes the group.
func Example() {
	for r, result := range inTwoRanks(func(b nn.Backend) trainer.Strategy {
		return trainer.NewAllReduce(b, optim.DefaultAdam())
	}) {
		fmt.Printf("rank %d: %d steps, %d rows, accuracy above 0.7: %v\n", r, result.Steps, result.Samples, result.Final.Metric("accuracy") > .7)
	}
	// Output:
	// rank 0: 200 steps, 12000 rows, accuracy above 0.7: true
	// rank 1: 200 steps, 12000 rows, accuracy above 0.7: true
}

// Ranks can exchange values once in 50 steps, instead of gradients in every step.
func ExampleLocalSGD() {
	for r, result := range inTwoRanks(func(b nn.Backend) trainer.Strategy {
		return trainer.NewLocalSGD(b, optim.DefaultAdam(), trainer.DiLoCo(50))
	}) {
		fmt.Printf("rank %d: %d steps, %d rows, accuracy above 0.7: %v\n", r, result.Steps, result.Samples, result.Final.Metric("accuracy") > .7)
	}
	// Output:
	// rank 0: 200 steps, 12000 rows, accuracy above 0.7: true
	// rank 1: 200 steps, 12000 rows, accuracy above 0.7: true
}

// inTwoRanks trains with a strategy, and returns the result of each rank.
func inTwoRanks(strategy func(nn.Backend) trainer.Strategy) []trainer.Result {
	train, test := data.Generate(data.DigitsOptions{Train: 600, Test: 150, Side: 12})
	digits := &data.Set{Train: train, Test: test}
	views, transports := collective.Local(2)
	results := make([]trainer.Result, 2)
	var ranks sync.WaitGroup
	for r := range results {
		ranks.Go(func() {
			group := collective.NewGroup(views[r], collective.OverTransport(views[r], transports[r]), collective.Options{})
			defer group.Close()
			var err error
			if results[r], err = learn(context.Background(), group, digits, strategy); err != nil {
				fmt.Println(err)
				if !trainer.Unanimous(err) {
					group.Abort(err) // so that the other rank does not wait
				}
			}
		})
	}
	ranks.Wait()
	return results
}

// learn is what each rank does.
func learn(ctx context.Context, group *collective.Group, set *data.Set, strategy func(nn.Backend) trainer.Strategy) (trainer.Result, error) {
	backend := cpu.New(cpu.Options{})
	defer backend.Close()
	const dropout, seed, batch = .1, 1, 32
	model, err := nn.NewClassifier(backend, models.ReluReluSoftmax(32, dropout), []int{set.Train.Features()}, set.Train.Classes, seed)
	if err != nil {
		return trainer.Result{}, err
	}
	// Each rank draws other rows of the same permutation.
	rows, err := data.NewSampler(set.Train.Rows, batch, group.Rank(), group.Size(), seed)
	if err != nil {
		return trainer.Result{}, err
	}
	train := data.NewFeed(set.Train.Stage(batch, backend), rows)
	test := data.NewPart(set.Test.Stage(batch, backend), set.Test.Rows, group.Rank(), group.Size(), batch)
	result, err := trainer.Train(ctx, trainer.Config{
		Groups: trainer.Only(group), Backend: backend,
		Strategy: strategy(backend),
		Task:     trainer.NewTask(model, train, test, trainer.Accuracy),
		Steps:    200,
		Eval:     trainer.Evaluations{Every: 20},
		Seed:     seed,
	})
	if err != nil {
		return result, err
	}
	return result, group.Barrier(ctx) // no rank leaves before all have finished
}
