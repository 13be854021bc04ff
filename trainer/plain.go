package trainer

import (
	"context"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/nn"
)

// plain takes steps one by one: it computes gradients and gives them to the
// strategy.
type plain struct {
	*loop
	micro   *microBatches
	cleared bool // the gradients are 0, because the last step zeroed them
}

// advance is part of stepper.
func (l *plain) advance(ctx context.Context, first, _ int) (begun int, stopped bool, err error) {
	begin := time.Now()
	s, err := l.learn(ctx, Step{Index: first, Late: l.due(first), Stop: l.wishesToStop(), Last: first+1 == l.Steps, Undivided: l.Accumulate || l.Reduce != ReduceMean})
	if err != nil {
		return first, false, err
	}
	compute := time.Since(begin)
	report, err := l.Strategy.Step(ctx, l.params, s)
	if err != nil {
		return first, false, err
	}
	l.cleared = report.Cleared
	begun = l.done(first)
	l.count(begun-1, report)
	if l.Observer != nil {
		l.Observer.Stepped(StepEvent{Report: report, Step: begun, Compute: compute, Elapsed: time.Since(l.begin)})
	}
	return begun, report.Stop, nil
}

// learn computes this rank's gradients of a step and completes s.
func (l *plain) learn(ctx context.Context, s Step) (Step, error) {
	n, rank := l.Task.Micro(), l.place.Rank()
	stream, opened := l.Strategy.(Streamer)
	opened = opened && !s.Undivided
	if !l.Accumulate {
		l.params.Untouch()
	}
	for k := range n {
		if _, err := l.Task.Load(s.Index, k); err != nil {
			return s, fmt.Errorf("trainer: the batch of step %d on rank %d: %w", s.Index+1, rank, err)
		}
		if !l.cleared {
			l.Backend.Zero(l.params.Grads)
		}
		l.cleared = false
		pass := nn.Pass{Backend: l.Backend, Train: true, Zeroed: true, Random: nn.Stream{
			Seed: l.Seed, Step: uint64(s.Index), First: rank*n + k, Stride: l.place.Size() * n}}
		last := k == n-1
		if last && opened {
			pass.Final = l.micro.folding(stream.Open(ctx, l.params, s))
		}
		loss, weight, err := l.Task.Learn(&pass)
		if err != nil {
			err = fmt.Errorf("trainer: step %d on rank %d: %w", s.Index+1, rank, err)
			if pass.Final != nil {
				stream.Abandon(err)
			}
			return s, err
		}
		if pass.Final != nil {
			pass.Final(0) // for models that do not say it
		}
		s.Weight += weight
		s.Loss += l.read(loss)
		l.micro.average(s, k, weight)
		if !last {
			l.micro.keep(k)
		}
	}
	if !opened {
		l.micro.fold(0, l.params.Grads.Len())
	}
	return s, nil
}

// read waits for the backend.
func (l *plain) read(loss nn.Buffer) float64 {
	var x [1]float32
	l.Backend.Read(x[:loss.Len()], loss)
	return float64(x[0])
}
