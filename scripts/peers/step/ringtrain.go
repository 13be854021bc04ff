package main

import (
	"context"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer"
)

// ringtrain trains with the trainer's own loop and one worker. A step does what a step
// of "ringtrain train --workers 1" does, except that batches are ready.
func ringtrain(m model, b *batches, c *clock) (about string, err error) {
	be := cpu.New(cpu.Options{})
	defer be.Close()
	net, err := m.initial(be)
	if err != nil {
		return "", err
	}
	views, transports := collective.Local(1)
	g := collective.NewGroup(views[0], collective.OverTransport(views[0], transports[0]), collective.Options{})
	defer g.Close()
	_, err = trainer.Train(context.Background(), trainer.Config{
		Groups: trainer.Only(g), Backend: be, Strategy: trainer.NewAllReduce(be, m.optimizer),
		Task: trainer.NewTask(net, newReady(be, b), nil), Steps: c.steps, Seed: seed,
		Observer: &watch{clock: c, last: time.Now()},
	})
	return "ringtrain, " + be.BLAS(), err
}

// ready has batches in the backend's memory.
type ready []nn.Batch

func newReady(be nn.Backend, b *batches) ready {
	var all ready
	for i := range count {
		pixels, classOf := b.batch(i)
		x, labels := be.Alloc(len(pixels)), be.AllocInts(len(classOf))
		be.Copy(x, pixels)
		be.CopyInts(labels, classOf)
		all = append(all, nn.Batch{X: nn.Tensor{Shape: []int{rows, features}, Data: x}, Labels: labels})
	}
	return all
}

// Batch implements trainer.Batches.
func (r ready) Batch(step int) (nn.Batch, error) { return r[step%len(r)], nil }

// watch times from the end of one step to the end of the next, so that everything in
// the loop counts.
type watch struct {
	clock *clock
	last  time.Time
}

// Stepped implements trainer.Observer.
func (w *watch) Stepped(e trainer.StepEvent) {
	now := time.Now()
	w.clock.add(now.Sub(w.last), e.Loss)
	w.last = now
}

// Evaluated implements trainer.Observer: there is no evaluation.
func (w *watch) Evaluated(trainer.EvalEvent) {}
