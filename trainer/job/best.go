package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// bestFile is the name of the weights of the best evaluation in the directory of --out.
const bestFile = "model-best.safetensors"

// Notes of checkpoints and of bestFile.
const (
	noteBestStep   = "best_step"   // steps done before the best evaluation
	noteBestMetric = "best_metric" // which decided
	noteBestValue  = "best_value"  // of that metric
	noteAfter      = "after"       // of bestFile: steps of the training that was searched
)

// searchesBest reports whether this run has several evaluations, or resumes one that
// had; before is the best of those. A single evaluation, at the end, needs no search: it is of
// the weights in model.safetensors.
func (s *Training) searchesBest(before trainer.Best) bool { return s.evalEvery > 0 || before.Found() }

// describeBest adds to notes which evaluation was the best.
func describeBest(notes map[string]string, b trainer.Best) map[string]string {
	notes = maps.Clone(notes)
	notes[noteBestStep], notes[noteBestMetric] = strconv.Itoa(b.Step), b.Metric.Name
	notes[noteBestValue] = strconv.FormatFloat(b.Metric.Value, 'g', -1, 64)
	return notes
}

// bestOf returns the best evaluation that a checkpoint knows of, and its weights.
func bestOf(t checkpoint.Training) (b trainer.Best, weights []checkpoint.Named) {
	step, err := strconv.Atoi(t.Notes[noteBestStep])
	value, wrong := strconv.ParseFloat(t.Notes[noteBestValue], 64)
	weights = t.Best
	if step == t.Step && len(weights) == 0 {
		weights = t.Weights
	}
	if err != nil || wrong != nil || len(weights) == 0 {
		return trainer.Best{}, nil
	}
	return trainer.Best{Step: step, Metric: trainer.Metric{Name: t.Notes[noteBestMetric], Value: value}}, weights
}

// restoreBest returns the best evaluation that a checkpoint knows of, with its values, if it
// was of rows with this sum: metrics of others do not compare.
func restoreBest(path string, t checkpoint.Training, p *nn.Params, sum string) (b trainer.Best, err error) {
	b, weights := bestOf(t)
	if !b.Found() || t.Notes[noteSum] != sum {
		return trainer.Best{}, nil
	}
	if b.Values, err = tensorArena(p, weights); err != nil {
		return b, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// bestOfAll returns the best evaluation of a run, the same on all ranks; before is the best
// before it. With an asynchronous strategy only rank 0 evaluates, so it tells the other machines.
// On a single machine, where workers may be lost, no other rank writes it.
func (r *rank) bestOfAll(ctx context.Context, before, mine trainer.Best) (trainer.Best, error) {
	if !r.training.searchesBest(before) {
		return trainer.Best{}, nil
	}
	if !r.training.Spec.asynchronous() || r.training.Spec.Place.Nodes < 2 {
		return mine, nil
	}
	b, err := r.shareBest(ctx, 0, mine)
	if err != nil {
		return b, fmt.Errorf("sending the best weights of rank 0 to the others: %w", err)
	}
	return b, nil
}

// shareBest gives all ranks the best evaluation that source knows, and its values, if source
// has them, to those that keep them.
func (r *rank) shareBest(ctx context.Context, source int, mine trainer.Best) (trainer.Best, error) {
	head := []int64{int64(mine.Step), int64(math.Float64bits(mine.Metric.Value)), int64(len(mine.Metric.Name)), int64(len(mine.Values))}
	if err := collective.Broadcast(ctx, r.group, head, source); err != nil || head[2] == 0 {
		return trainer.Best{}, err
	}
	name := make([]byte, head[2])
	copy(name, mine.Metric.Name)
	if err := collective.Broadcast(ctx, r.group, name, source); err != nil {
		return trainer.Best{}, err
	}
	b := trainer.Best{Step: int(head[0]), Metric: trainer.Metric{Name: string(name), Value: math.Float64frombits(uint64(head[1]))}}
	if head[3] == 0 {
		return b, nil
	}
	if b.Values = mine.Values; r.group.Rank() != source {
		b.Values = make([]float32, head[3])
	}
	err := collective.Broadcast(ctx, r.group, b.Values, source)
	if !r.keepsBest() {
		b.Values = nil
	}
	return b, err
}

// keepsBest reports whether this rank keeps the weights of the best evaluation: to write
// them to a file of its machine, or into checkpoints.
func (r *rank) keepsBest() bool {
	return r.training.Spec.Saving.Dir != "" && (r.leader || r.group.Rank() == 0)
}

// writeBest writes the weights of the best evaluation, once on each machine. It removes
// those of an earlier run if this one has none.
func (r *rank) writeBest(ctx context.Context, b trainer.Best, p *nn.Params, steps int) {
	if r.final == nil || !r.leader {
		return
	}
	if !b.Found() || len(b.Values) == 0 {
		_ = os.Remove(filepath.Join(r.final.dir, bestFile)) // usually there is none
		return
	}
	tensors := arenaTensors(p, b.Values)
	if r.idle && hasWeights(filepath.Join(r.final.dir, bestFile), tensors) {
		return
	}
	defer r.pulse.Save()()
	notes := describeBest(r.notes(), b)
	notes["format"], notes["step"], notes[noteAfter] = checkpoint.Format, strconv.Itoa(b.Step), strconv.Itoa(steps)
	dir, ok := r.final.write(ctx, bestWeights, bestFile, b.Step, func(dir string) error {
		return r.files.Save(filepath.Join(dir, bestFile), checkpoint.File{Tensors: tensors, Metadata: notes})
	})
	if ok {
		r.events.Emit(&event.Weights{Path: filepath.Join(dir, bestFile), Step: b.Step, Best: true, InsteadOf: r.final.insteadOf(dir, bestFile)})
	}
}

// reportBest adds the best of several evaluations to the result of this rank.
func (r *rank) reportBest(e *event.Result, b trainer.Best) *event.Result {
	if b.Found() {
		e.BestStep, e.BestMetric, e.BestValue = b.Step, b.Metric.Name, b.Metric.Value
	}
	return e
}

// openBest is openWeights for the weights of the best evaluation.
func (l *Loader) openBest(path string) (weights []checkpoint.Named, notes map[string]string, from string, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		t, err := checkpoint.Read(path, l.fitsStored)
		if err != nil {
			return nil, nil, path, fmt.Errorf("%w; --best needs the --out of a run, or a checkpoint in it", err)
		}
		if weights, notes = bestIn(t); weights == nil {
			return nil, nil, path, fmt.Errorf("%s: %w", path, errNoBest)
		}
		return weights, notes, path, nil
	}
	plain := filepath.Join(path, bestFile)
	weights, notes, err = l.readWeights(plain)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, plain, err
	}
	after, _ := strconv.Atoi(notes[noteAfter])
	t, newest, broken, none := checkpoint.Latest(path, l.fitsStored)
	if none == nil && (err != nil || t.Step > after) {
		if weights, notes := bestIn(t); weights != nil {
			return weights, notes, newest, nil
		}
	}
	switch {
	case err != nil && none != nil && len(broken) > 0:
		return nil, nil, "", broken[0]
	case err != nil:
		return nil, nil, "", fmt.Errorf("%s: %w", path, errNoBest)
	}
	return weights, notes, plain, nil
}

// errNoBest says that there are no weights of a best evaluation.
var errNoBest = errors.New("there are no weights of a best evaluation: train --out keeps them if evaluation.frequency is above 0; leave out --best for the last weights")

// bestIn returns the weights of the best evaluation that a checkpoint knows of, with notes
// as bestFile has them; nil if there are none.
func bestIn(t checkpoint.Training) ([]checkpoint.Named, map[string]string) {
	b, weights := bestOf(t)
	if !b.Found() {
		return nil, nil
	}
	notes := maps.Clone(t.Notes)
	notes["step"] = strconv.Itoa(b.Step)
	return weights, notes
}
