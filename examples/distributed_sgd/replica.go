package main

import (
	"context"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/sgd"
)

// creator opens the images, and returns a function that makes the network of a device and
// chooses its rows.
func (c *settings) creator() (sgd.Creator, error) {
	set, err := open(c.data, c.seed)
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, worker, device int) (*sgd.Replica, error) {
		return c.replica(set, worker*c.devices+device)
	}, nil
}

// replica makes the replica of a rank.
func (c *settings) replica(set *data.Set, rank int) (*sgd.Replica, error) {
	size := c.workers * c.devices
	b := cpu.New(cpu.Options{})
	m, err := nn.NewClassifier(b, resnet(), []int{set.Train.Features()}, set.Train.Classes, c.seed)
	if err != nil {
		return nil, err
	}
	rows, err := data.NewSampler(set.Train.Rows, c.batch, rank, size, c.seed)
	if err != nil {
		return nil, err
	}
	feed := data.NewFeed(set.Train.Stage(c.batch, b), rows)
	var train trainer.Batches[nn.Batch] = feed
	if c.fixed {
		first, err := feed.Batch(0)
		if err != nil {
			return nil, err
		}
		train = sgd.Fixed(first)
	}
	test := data.NewPart(set.Test.Stage(c.batch, b), set.Test.Rows, rank, size, c.batch)
	return &sgd.Replica{Backend: b, Task: trainer.NewTask(m, train, test, trainer.Accuracy), Optimizer: optim.DefaultAdam()}, nil
}
