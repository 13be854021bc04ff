package sgd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
)

// errUnread is the error of the replicas that did not read a broken checkpoint.
var errUnread = errors.New("worker 0, device 0 could not read it")

// Checkpoint writes weights, optimizer state and the number of steps into a directory as
// checkpoint.FileName, and returns the path. The process of worker 0, device 0 writes; in
// the others, the path is empty. A failed write does not break s.
func (s *SGD) Checkpoint(ctx context.Context, dir string) (path string, err error) {
	var t checkpoint.Training
	what := fmt.Sprintf("the checkpoint of step %d", s.step)
	err = s.together(ctx, what, func(r *Replica) error {
		state, err := r.strategy.State(ctx, r.rank == 0)
		if err == nil && r.rank == 0 {
			t, err = s.contents(ctx, r, state)
		}
		return err
	})
	if err != nil || s.first() == nil {
		return "", err
	}
	if path, err = t.Write(dir); err != nil {
		return "", fmt.Errorf("sgd: %s: %w", what, err)
	}
	return path, nil
}

// contents returns what a checkpoint contains.
func (s *SGD) contents(ctx context.Context, r *Replica, state trainer.State) (t checkpoint.Training, err error) {
	t = checkpoint.Training{Step: state.Step, Slots: map[string][]checkpoint.Named{}, Notes: map[string]string{
		"workers": strconv.Itoa(s.options.Workers), "devices": strconv.Itoa(s.options.Devices), "seed": strconv.FormatUint(s.options.Seed, 10)}}
	if t.Weights, err = r.weights(ctx); err != nil {
		return t, err
	}
	for name, arena := range state.Slots {
		if t.Slots[name], err = tensorsOf(r.Task.Params(), arena); err != nil {
			return t, err
		}
	}
	return t, nil
}

// Restore continues from a file that Checkpoint wrote. Only the process of worker 0,
// device 0 reads it. With the same rows and as many replicas, the bits are those of a
// training that was not interrupted. A file that cannot be read or does not fit the model
// changes nothing, and does not break s. Each call allocates the optimizer's state again.
func (s *SGD) Restore(ctx context.Context, path string) error {
	if s.broken != nil {
		return s.broken
	}
	var from trainer.State
	var values []float32
	var unread error
	if r := s.first(); r != nil {
		from, values, unread = r.read(path)
	}
	read, step := int64(from.Step), int64(0)
	if unread != nil {
		read = -1
	}
	err := s.together(ctx, "restoring "+path, func(r *Replica) error {
		at := []int64{read}
		if err := collective.Broadcast(ctx, r.group, at, 0); err != nil {
			return err
		}
		if r == s.replicas[0] {
			step = at[0]
		}
		if at[0] < 0 {
			return nil
		}
		if r.rank == 0 {
			r.Backend.Copy(r.Task.Params().Values, values)
		}
		return r.start(ctx, s.options, from)
	})
	switch {
	case err != nil:
		return err
	case unread != nil:
		return fmt.Errorf("sgd: %w", unread)
	case step < 0:
		return fmt.Errorf("sgd: checkpoint %s: %w", path, errUnread)
	}
	s.step = int(step)
	return nil
}

// read returns the state and the values of a checkpoint that fits the replica.
func (r *Replica) read(path string) (state trainer.State, values []float32, err error) {
	t, err := checkpoint.Read(path)
	if err != nil {
		return state, nil, err
	}
	p := r.Task.Params()
	if values, err = arenaOf(p, t.Weights); err != nil {
		return state, nil, fmt.Errorf("checkpoint %s does not fit the model: %w", path, err)
	}
	state = trainer.State{Step: t.Step, Slots: map[string][]float32{}}
	for _, name := range r.Optimizer.Slots() {
		if state.Slots[name], err = arenaOf(p, t.Slots[name]); err != nil {
			return state, nil, fmt.Errorf("checkpoint %s: slot %q does not fit the model: %w", path, name, err)
		}
	}
	for name := range t.Slots {
		if !slices.Contains(r.Optimizer.Slots(), name) {
			return state, nil, fmt.Errorf("checkpoint %s has a slot %q, which the optimizer does not keep", path, name)
		}
	}
	return state, values, nil
}
