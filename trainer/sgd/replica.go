package sgd

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// A Replica is the model and the data of one device. A Creator sets the exported fields.
// It belongs to one goroutine at a time.
type Replica struct {
	// Backend has the memory of the model. Close closes it. With New, it must be host
	// memory.
	Backend nn.Backend
	// Task is the model with its rows; see trainer.NewTask and Fixed. It has one
	// micro-batch. Its test rows are this replica's share of those of all replicas.
	Task trainer.Task
	// Optimizer is the same for all replicas.
	Optimizer optim.Optimizer

	worker, device, rank int
	group                *collective.Group
	strategy             *trainer.AllReduce
}

// Worker returns the number of the replica's worker, from 0.
func (r *Replica) Worker() int { return r.worker }

// Device returns the number of the replica's device in its worker, from 0.
func (r *Replica) Device() int { return r.device }

// A Creator makes the replica of a device of a worker. Both count from 0. It is called
// once for each replica of this process, concurrently, and returns when ctx ends. The
// initial weights may differ: those of worker 0, device 0 count.
type Creator func(ctx context.Context, worker, device int) (*Replica, error)

// create calls the Creator for a place.
func (r *Replica) create(ctx context.Context, creator Creator) error {
	if creator == nil {
		return errors.New("there is no creator: it is nil")
	}
	made, err := creator(ctx, r.worker, r.device)
	if err != nil {
		return err
	}
	if made != nil {
		r.Backend = made.Backend // so that close frees it, whatever else is wrong
	}
	if made == nil || made.Backend == nil || made.Task == nil || made.Optimizer == nil {
		return errors.New("the creator must set Backend, Task and Optimizer")
	}
	r.Task, r.Optimizer = made.Task, made.Optimizer
	if n := r.Task.Micro(); n != 1 {
		return fmt.Errorf("the task must have 1 micro-batch, not %d; use more devices", n)
	}
	r.strategy = trainer.NewAllReduce(r.Backend, r.Optimizer)
	return nil
}

// close releases what the replica has, except for its group.
func (r *Replica) close() error {
	if r.Backend == nil {
		return nil // the creator failed
	}
	var err error
	if r.strategy != nil {
		err = r.strategy.Close()
	}
	return errors.Join(err, r.Backend.Close())
}

// learn computes the gradients of a step, in a job of size replicas.
func (r *Replica) learn(step, size int, seed uint64) (trainer.Step, error) {
	s := trainer.Step{Index: step}
	if _, err := r.Task.Load(step, 0); err != nil {
		return s, err
	}
	r.Backend.Zero(r.Task.Params().Grads)
	loss, weight, err := r.Task.Learn(&nn.Pass{
		Backend: r.Backend, Train: true, Zeroed: true,
		Random: nn.Stream{Seed: seed, Step: uint64(step), First: r.rank, Stride: size},
	})
	if err != nil {
		return s, err
	}
	var sum [1]float32
	r.Backend.Read(sum[:], loss) // waits for the gradients
	s.Weight, s.Loss = weight, float64(sum[0])
	return s, nil
}

// Fixed returns training rows that are the same in every step: the rows that a device
// keeps in its memory.
func Fixed[B trainer.Batch](b B) trainer.Batches[B] { return fixed[B]{b} }

type fixed[B trainer.Batch] struct{ batch B }

// Batch implements trainer.Batches.
func (f fixed[B]) Batch(int) (B, error) { return f.batch, nil }
