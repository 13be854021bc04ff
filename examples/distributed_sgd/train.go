package main

import (
	"context"
	"fmt"
	"io"

	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/sgd"
)

// train takes the steps, evaluates, and saves the weights. All processes call it.
func (c *settings) train(ctx context.Context, s *sgd.SGD, stdout io.Writer) error {
	took, err := s.Warmup(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "warmup time %v\n", took.Seconds())
	for range c.steps {
		r, err := s.Step(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "Current loss %v\n", r.Loss)
	}
	e, err := s.Evaluate(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "test loss %.4f accuracy %.4f\n", e.Loss, e.Metric("accuracy"))
	weights, err := s.Weights(ctx)
	if err != nil || c.out == "" {
		return err
	}
	if err := checkpoint.Save(c.out, checkpoint.File{Tensors: weights}); err != nil {
		return err
	}
	values := 0
	for _, w := range weights {
		values += w.Tensor.Shape().TotalSize()
	}
	fmt.Fprintf(stdout, "%s: %d tensors with %d values\n", c.out, len(weights), values)
	return nil
}
