package sgd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
)

// Weights returns copies of all parameters, by name, as float32 tensors. checkpoint.Save
// writes them as safetensors. It fails if the replicas differ, with a
// *trainer.DivergedError that names the ranks.
func (s *SGD) Weights(ctx context.Context) (weights []checkpoint.Named, err error) {
	err = s.together(ctx, "reading the weights", func(r *Replica) error {
		if err := r.strategy.Finish(ctx, r.Task.Params()); err != nil {
			return err
		}
		if r != s.replicas[0] {
			return nil
		}
		weights, err = r.weights(ctx)
		return err
	})
	return weights, err
}

// SetWeights sets the parameters of all replicas to copies of weights, which has each parameter
// once, as float32. All processes call it, and only that of worker 0, device 0 needs weights.
// Weights that do not fit the model change nothing, and do not break s. The optimizer's state does
// not change.
func (s *SGD) SetWeights(ctx context.Context, weights []checkpoint.Named) error {
	if s.broken != nil {
		return s.broken
	}
	var values []float32
	var unfit error
	if r := s.first(); r != nil {
		values, unfit = arenaOf(r.Task.Params(), weights)
	}
	refused := false
	err := s.together(ctx, "setting the weights", func(r *Replica) error {
		fits := []int64{1}
		if unfit != nil {
			fits[0] = 0
		}
		if err := collective.Broadcast(ctx, r.group, fits, 0); err != nil {
			return err
		}
		if r == s.replicas[0] {
			refused = fits[0] == 0
		}
		if fits[0] == 0 {
			return nil
		}
		p := r.Task.Params()
		if r.rank == 0 {
			r.Backend.Copy(p.Values, values)
		}
		if err := r.group.Broadcast(ctx, trainer.Operand(p.Values), 0); err != nil {
			return err
		}
		return r.Backend.Sync(ctx)
	})
	switch {
	case err != nil:
		return err
	case unfit != nil:
		return fmt.Errorf("sgd: setting the weights: %w", unfit)
	case refused:
		return errors.New("sgd: setting the weights: those of worker 0, device 0 do not fit the model; its error says why")
	}
	return nil
}

// weights returns copies of the replica's parameters.
func (r *Replica) weights(ctx context.Context) ([]checkpoint.Named, error) {
	p := r.Task.Params()
	arena := make([]float32, p.Values.Len())
	r.Backend.Read(arena, p.Values)
	if err := r.Backend.Sync(ctx); err != nil {
		return nil, err
	}
	return tensorsOf(p, arena)
}

// tensorsOf returns an arena as tensors with the names and shapes of parameters.
func tensorsOf(p *nn.Params, arena []float32) ([]checkpoint.Named, error) {
	host := over(p, arena)
	out := make([]checkpoint.Named, len(p.List))
	for i, q := range p.List {
		t, err := host.Weight(q.Name)
		if err != nil {
			return nil, err
		}
		out[i] = checkpoint.Named{Name: q.Name, Tensor: t}
	}
	return out, nil
}

// arenaOf returns tensors as an arena of parameters. They must have each parameter once.
func arenaOf(p *nn.Params, tensors []checkpoint.Named) ([]float32, error) {
	arena := make([]float32, p.Values.Len())
	host, seen := over(p, arena), map[string]*tensor.Dense{}
	for _, n := range tensors {
		if seen[n.Name] != nil {
			return nil, fmt.Errorf("there are two tensors %q", n.Name)
		}
		if err := host.SetWeight(n.Name, n.Tensor); err != nil {
			return nil, err
		}
		seen[n.Name] = n.Tensor
	}
	if i := slices.IndexFunc(p.List, func(q *nn.Param) bool { return seen[q.Name] == nil }); i >= 0 {
		return nil, fmt.Errorf("there is no tensor %q", p.List[i].Name)
	}
	return arena, nil
}

// over returns the parameters with their values in an arena of host memory.
func over(p *nn.Params, arena []float32) *nn.Params {
	host := &nn.Params{List: make([]*nn.Param, len(p.List)), Values: nn.Host(arena)}
	for i, q := range p.List {
		host.List[i] = &nn.Param{Name: q.Name, Shape: q.Shape, Offset: q.Offset, Values: host.Values.Slice(q.Offset, q.Offset+q.Values.Len())}
	}
	return host
}
