package job

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// weightsFile is the name of the weights in the directory of --out.
const weightsFile = "model.safetensors"

// writeWeights writes the trained weights, once on each machine, if there is an output
// directory.
func (r *rank) writeWeights(ctx context.Context, tensors []checkpoint.Named, step int) {
	if r.final == nil || !r.leader || r.idle && hasWeights(filepath.Join(r.training.Spec.Saving.Dir, weightsFile), tensors) {
		return
	}
	defer r.pulse.Save()()
	notes := r.notes()
	notes["format"], notes["step"] = checkpoint.Format, strconv.Itoa(step)
	dir, ok := r.final.write(ctx, trainedWeights, weightsFile, step, func(dir string) error {
		return r.files.Save(filepath.Join(dir, weightsFile), checkpoint.File{Tensors: tensors, Metadata: notes})
	})
	if ok {
		r.events.Emit(&event.Weights{Path: filepath.Join(dir, weightsFile), Step: step, InsteadOf: r.final.insteadOf(dir, weightsFile)})
	}
}

// hasWeights reports whether a file already contains these weights.
func hasWeights(path string, tensors []checkpoint.Named) bool {
	f, err := checkpoint.Load(path)
	if err != nil {
		return false
	}
	there, err := checkpoint.Hash(f.Tensors)
	here, wrong := checkpoint.Hash(tensors)
	return err == nil && wrong == nil && there == here
}

// weights returns a copy of all parameters.
func weights(b nn.Backend, p *nn.Params) ([]checkpoint.Named, error) {
	values, err := valuesOf(b, p)
	return arenaTensors(p, values), err
}

// valuesOf returns a copy of the arena of all parameters.
func valuesOf(b nn.Backend, p *nn.Params) ([]float32, error) {
	arena := make([]float32, p.Values.Len())
	b.Read(arena, p.Values)
	return arena, b.Sync(context.Background()) // needs no deadline: a device computes or has failed
}

// setWeights sets all parameters to tensors that fit them. path names their file in
// errors.
func setWeights(path string, b nn.Backend, p *nn.Params, weights []checkpoint.Named) error {
	if _, _, remote := p.Values.Device(); remote {
		arena, err := tensorArena(p, weights)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		b.Copy(p.Values, arena)
		return b.Sync(context.Background()) // needs no deadline: a device copies or has failed
	}
	for _, t := range weights {
		if err := p.SetWeight(t.Name, t.Tensor); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// arenaTensors returns an arena as tensors with the names and shapes of parameters. They
// share its memory.
func arenaTensors(p *nn.Params, arena []float32) []checkpoint.Named {
	out := make([]checkpoint.Named, len(p.List))
	for i, q := range p.List {
		part := arena[q.Offset : q.Offset+q.Values.Len()]
		out[i] = checkpoint.Named{Name: q.Name, Tensor: tensor.New(tensor.WithShape(q.Shape...), tensor.WithBacking(part))}
	}
	return out
}

// tensorArena copies tensors that fit the parameters into an arena.
func tensorArena(p *nn.Params, saved []checkpoint.Named) ([]float32, error) {
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
