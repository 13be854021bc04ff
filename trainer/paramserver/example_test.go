package paramserver_test

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
	"github.com/ringtrain/ringtrain/trainer/paramserver"
)

// Two workers train with one parameter server. Here all three are goroutines; in a job they
// are processes, and collective/cluster makes the group.
func Example() {
	train, test := data.Generate(data.DigitsOptions{Train: 600, Test: 150, Side: 12})
	digits := &data.Set{Train: train, Test: test}
	const workers = 2
	views, transports := collective.Local(workers + 1)
	var ranks sync.WaitGroup
	for r := range views {
		ranks.Go(func() {
			group := collective.NewGroup(views[r], collective.OverTransport(views[r], transports[r]), collective.Options{})
			defer group.Close()
			if err := join(context.Background(), group, workers, digits); err != nil {
				fmt.Println(err)
				group.Abort(err) // so that the others do not wait
			}
		})
	}
	ranks.Wait()
	// Output:
	// 200 steps, 12000 rows, accuracy above 0.7: true
}

// join is what each rank does.
func join(ctx context.Context, group *collective.Group, workers int, set *data.Set) error {
	role := 0
	if group.Rank() >= workers {
		role = 1
	}
	peers, err := group.Sub(ctx, role, group.Rank())
	if err != nil {
		return err
	}
	defer peers.Close()
	backend := cpu.New(cpu.Options{})
	defer backend.Close()
	if role == 1 {
		return paramserver.Serve(ctx, group, workers, backend, optim.DefaultAdam())
	}
	const dropout, seed, batch = .1, 1, 32
	model, err := nn.NewClassifier(backend, models.ReluReluSoftmax(32, dropout), []int{set.Train.Features()}, set.Train.Classes, seed)
	if err != nil {
		return err
	}
	rows, err := data.NewSampler(set.Train.Rows, batch, peers.Rank(), workers, seed)
	if err != nil {
		return err
	}
	strategy := paramserver.NewSync(backend, optim.DefaultAdam(), paramserver.Servers{Group: group})
	result, err := trainer.Train(ctx, trainer.Config{
		Groups: trainer.Only(peers), Backend: backend, Strategy: strategy, Steps: 200, Eval: trainer.Evaluations{Every: 20}, Seed: seed,
		Task: trainer.NewTask(model, data.NewFeed(set.Train.Stage(batch, backend), rows),
			data.NewPart(set.Test.Stage(batch, backend), set.Test.Rows, peers.Rank(), workers, batch), trainer.Accuracy),
	})
	if err != nil {
		return err
	}
	if group.Rank() == 0 {
		fmt.Printf("%d steps, %d rows, accuracy above 0.7: %v\n", result.Steps, result.Samples, result.Final.Metric("accuracy") > .7)
	}
	return paramserver.End(ctx, group, workers)
}
