package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
)

// A saver writes the checkpoints of rank 0.
type saver struct {
	dir    string
	keep   int
	values nn.Backend // whose parameters they are
	notes  map[string]string
	events emitter
	failed error // the last attempt's
}

// Save implements trainer.Saver.
func (s *saver) Save(_ context.Context, snap trainer.Snapshot) error {
	path, err := s.write(snap)
	if s.failed = err; err != nil {
		s.events.emit(&checkpointFailedEvent{Event: "checkpoint_failed", Path: path, Step: snap.Step, Error: err.Error()})
		return err
	}
	s.events.emit(&checkpointEvent{Event: "checkpoint", Path: path, Step: snap.Step})
	return nil
}

func (s *saver) write(snap trainer.Snapshot) (path string, err error) {
	path = filepath.Join(s.dir, checkpoint.FileName(snap.Step))
	t := checkpoint.Training{Step: snap.Step, Slots: map[string][]checkpoint.Named{}, Notes: s.notes}
	if t.Weights, err = weights(s.values, snap.Params); err != nil {
		return path, err
	}
	for name, arena := range snap.State.Slots {
		t.Slots[name] = slotTensors(snap.Params, arena)
	}
	for _, arena := range snap.State.Residuals {
		t.Residuals = append(t.Residuals, slotTensors(snap.Params, arena))
	}
	if path, err = t.Write(s.dir); err != nil {
		return path, err
	}
	return path, checkpoint.Prune(s.dir, snap.Step, s.keep)
}

// slotTensors is an arena as tensors with names and shapes of parameters. They
// share its memory.
func slotTensors(p *nn.Params, arena []float32) []checkpoint.Named {
	out := make([]checkpoint.Named, len(p.List))
	for i, q := range p.List {
		part := arena[q.Offset : q.Offset+q.Values.Len()]
		out[i] = checkpoint.Named{Name: q.Name, Tensor: tensor.New(tensor.WithShape(q.Shape...), tensor.WithBacking(part))}
	}
	return out
}

// slotArena puts tensors that fit the parameters into an arena.
func slotArena(p *nn.Params, saved []checkpoint.Named) ([]float32, error) {
	arena := make([]float32, p.Values.Len())
	for _, n := range saved {
		q := p.Lookup(n.Name)
		values, ok := n.Tensor.Data().([]float32)
		if !ok || len(values) != q.Values.Len() {
			return nil, fmt.Errorf("%s is not float32", n.Name)
		}
		copy(arena[q.Offset:], values)
	}
	return arena, nil
}

// keep adds to c what --out and --resume ask for.
func (r *rank) keep(ctx context.Context, c *trainer.Config) error {
	s := r.settings
	if s.flags.out == "" {
		return nil
	}
	c.SaveEvery, c.RequireSave = s.flags.every, s.flags.requireSave
	if r.group.Rank() == 0 {
		r.saver = &saver{dir: s.flags.out, keep: s.flags.keep, values: c.Backend, notes: r.notes(), events: r.events}
		c.Saver = r.saver
	}
	if s.flags.resume == "" {
		return nil
	}
	var err error
	c.From, err = r.resume(ctx, c.Backend, c.Model.Params())
	return err
}

// notes says what a checkpoint is of.
func (r *rank) notes() map[string]string {
	s := r.settings
	notes := map[string]string{
		"config":      s.config.Text(),
		"data":        s.source.Name,
		"data_sha256": r.set.Sum(),
		"seed":        strconv.FormatUint(s.flags.seed, 10),
		"workers":     strconv.Itoa(r.group.Size()),
		"batch":       strconv.Itoa(s.batch),
		"accumulate":  strconv.Itoa(s.micro),
		"reduce":      s.reduce.String(),
		"compress":    s.compress.String(),
		"version":     version(),
		"blas":        r.blas,
		"plan":        r.plan,
		"classes":     strconv.Itoa(r.set.Train.Classes),
		"height":      strconv.Itoa(r.set.Train.Height),
		"width":       strconv.Itoa(r.set.Train.Width),
	}
	if s.flags.chosen() != collective.RingOrder {
		notes["order"], notes["plan_digest"] = s.flags.order, planDigest(r.group, r.model.Params().Grads.Len())
	}
	return notes
}

// save writes the weights, once on each machine, if a directory was named. At
// the end of a training that is no error unless it must be: the result counts,
// too. A job that was stopped must not look as if all were saved.
func (r *rank) save(tensors []checkpoint.Named, result trainer.Result, stopped bool) error {
	s := r.settings
	if stopped && r.saver != nil && r.saver.failed != nil {
		return fmt.Errorf("saving the weights: %w", r.saver.failed)
	}
	if s.flags.out == "" || !r.teller {
		return nil
	}
	path := filepath.Join(s.flags.out, weightsFile)
	notes := r.notes()
	notes["format"], notes["step"] = checkpoint.Format, strconv.Itoa(result.Steps)
	err := checkpoint.Save(path, checkpoint.File{Tensors: tensors, Metadata: notes})
	switch {
	case err == nil:
		r.events.emit(&weightsEvent{Event: "weights", Path: path, Step: result.Steps})
	case stopped || s.flags.requireSave:
		return fmt.Errorf("saving the weights: %w", err)
	default:
		r.events.emit(&checkpointFailedEvent{Event: "checkpoint_failed", Path: path, Step: result.Steps, Error: err.Error()})
	}
	return nil
}
