package job

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/job/build"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// A saver writes the checkpoints of rank 0.
type saver struct {
	files  checkpoint.Writer
	keep   int
	values nn.Backend // whose parameters they are
	notes  map[string]string
	last   *persister // for the last checkpoint; the others are tried once
	events event.Sink
}

// errLost is the error of a last checkpoint that was given up. The persister
// knows more.
var errLost = errors.New("it is lost")

// What may be lost, in the user's words.
const (
	lastCheckpoint = "the last checkpoint"
	trainedWeights = "the trained weights"
)

// Save implements trainer.Saver.
func (s *saver) Save(ctx context.Context, snap trainer.Snapshot) error {
	defer s.last.pulse.Save()()
	t, err := s.training(snap)
	if err != nil {
		return s.failed(snap, s.last.dir, err)
	}
	write := func(dir string) error {
		_, err := s.files.Write(dir, t)
		return err
	}
	name, dir := checkpoint.FileName(snap.Step), s.last.dir
	if snap.Last {
		var ok bool
		if dir, ok = s.last.write(ctx, lastCheckpoint, name, snap.Step, write); !ok {
			return errLost
		}
	} else if err := write(dir); err != nil {
		return s.failed(snap, dir, err)
	}
	s.events.Emit(&event.Checkpoint{Path: filepath.Join(dir, name), Step: snap.Step, InsteadOf: s.last.insteadOf(dir, name)})
	if dir != s.last.dir { // what else is there is not ours
		return nil
	}
	err = checkpoint.Prune(dir, snap.Step, s.keep)
	if err != nil {
		s.warn(snap.Step, dir, err)
	}
	if snap.Last {
		return nil // it is on disk
	}
	return err
}

// failed tells of a checkpoint that was not written, or, if it is the last,
// leaves that to the end.
func (s *saver) failed(snap trainer.Snapshot, dir string, err error) error {
	if snap.Last {
		s.last.lose(lastCheckpoint, checkpoint.FileName(snap.Step), snap.Step, err)
		return errLost
	}
	s.warn(snap.Step, dir, err)
	return err
}

func (s *saver) warn(step int, dir string, err error) {
	s.events.Emit(&event.CheckpointFailed{Path: filepath.Join(dir, checkpoint.FileName(step)), Step: step, Error: err.Error()})
}

// training is a snapshot as a checkpoint.
func (s *saver) training(snap trainer.Snapshot) (t checkpoint.Training, err error) {
	t = checkpoint.Training{Step: snap.Step, Slots: map[string][]checkpoint.Named{}, Notes: s.notes}
	if t.Weights, err = weights(s.values, snap.Params); err != nil {
		return t, err
	}
	for name, arena := range snap.State.Slots {
		t.Slots[name] = slotTensors(snap.Params, arena)
	}
	for _, arena := range snap.State.Residuals {
		t.Residuals = append(t.Residuals, slotTensors(snap.Params, arena))
	}
	return t, nil
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
	s := r.training
	if s.Spec.Saving.Dir == "" {
		return nil
	}
	r.files = checkpoint.Writer{Run: launch.Self().Tag(), Progress: r.pulse.Wrote}
	r.last = &persister{dir: s.Spec.Saving.Dir, fallback: s.Spec.Saving.Fallback, quit: r.quit, events: r.events, pulse: r.pulse}
	c.SaveEvery, c.RequireSave = s.Spec.Saving.Every, s.Spec.Saving.Require
	if r.group.Rank() == 0 {
		c.Saver = &saver{files: r.files, keep: s.Spec.Saving.Keep, values: c.Backend, notes: r.notes(), last: r.last, events: r.events}
	}
	if s.Spec.Saving.Resume == "" {
		return nil
	}
	var err error
	c.From, err = r.resume(ctx, c.Backend, c.Model.Params())
	return err
}

// notes says what a checkpoint is of.
func (r *rank) notes() map[string]string {
	s := r.training
	notes := map[string]string{
		"config":      s.Config.Text(),
		"data":        s.Source.Name,
		"data_sha256": r.set.Sum(),
		"seed":        strconv.FormatUint(s.Spec.Seed, 10),
		"workers":     strconv.Itoa(r.group.Size()),
		"batch":       strconv.Itoa(s.Batch),
		"accumulate":  strconv.Itoa(s.micro),
		"reduce":      s.reduce.String(),
		"compress":    s.compress.String(),
		"version":     build.Version(),
		"blas":        r.blas,
		"plan":        r.plan,
		"classes":     strconv.Itoa(r.set.Train.Classes),
		"height":      strconv.Itoa(r.set.Train.Height),
		"width":       strconv.Itoa(r.set.Train.Width),
	}
	if s.Spec.Order.HostOrder() != collective.RingOrder {
		notes["order"], notes["plan_digest"] = s.Spec.Order.Order, planDigest(r.group, r.model.Params().Grads.Len())
	}
	return notes
}

// holds reports whether a file has these weights already.
func (r *rank) holds(path string, tensors []checkpoint.Named) bool {
	f, err := checkpoint.Load(path)
	if err != nil {
		return false
	}
	there, err := checkpoint.Hash(f.Tensors)
	here, wrong := checkpoint.Hash(tensors)
	return err == nil && wrong == nil && there == here
}

// save writes the weights, once on each machine, if a directory was named. Its
// error says what this machine has lost, the last checkpoint included.
func (r *rank) save(ctx context.Context, tensors []checkpoint.Named, step int) error {
	if r.last == nil {
		return nil
	}
	if !r.teller || r.idle && r.holds(filepath.Join(r.training.Spec.Saving.Dir, weightsFile), tensors) {
		return r.last.err()
	}
	defer r.pulse.Save()()
	notes := r.notes()
	notes["format"], notes["step"] = checkpoint.Format, strconv.Itoa(step)
	dir, ok := r.last.write(ctx, trainedWeights, weightsFile, step, func(dir string) error {
		return r.files.Save(filepath.Join(dir, weightsFile), checkpoint.File{Tensors: tensors, Metadata: notes})
	})
	if ok {
		r.events.Emit(&event.Weights{Path: filepath.Join(dir, weightsFile), Step: step, InsteadOf: r.last.insteadOf(dir, weightsFile)})
	}
	return r.last.err()
}
