package job

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/job/build"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// A checkpointer writes the checkpoints of a job. Only rank 0 has one.
type checkpointer struct {
	files  checkpoint.Writer
	keep   int
	values nn.Backend // holds the parameters
	notes  map[string]string
	final  *finalWriter // writes the last checkpoint; the others get one attempt
	events event.Sink
}

// errLost is the error of a last checkpoint that could not be written. The finalWriter
// has the details.
var errLost = errors.New("it is lost")

// Save implements trainer.Saver. It writes a checkpoint and removes obsolete ones.
func (c *checkpointer) Save(ctx context.Context, snap trainer.Snapshot) error {
	defer c.final.pulse.Save()()
	t, err := c.contents(snap)
	if err != nil {
		return c.failed(snap, c.final.dir, err)
	}
	write := func(dir string) error {
		_, err := c.files.Write(dir, t)
		return err
	}
	name, dir := checkpoint.FileName(snap.Step), c.final.dir
	if snap.Last {
		var ok bool
		if dir, ok = c.final.write(ctx, lastCheckpoint, name, snap.Step, write); !ok {
			return errLost
		}
	} else if err := write(dir); err != nil {
		return c.failed(snap, dir, err)
	}
	c.events.Emit(&event.Checkpoint{Path: filepath.Join(dir, name), Step: snap.Step, InsteadOf: c.final.insteadOf(dir, name)})
	if dir != c.final.dir { // other files in the fallback directory are not ours to remove
		return nil
	}
	err = checkpoint.Prune(dir, snap.Step, c.keep)
	if err != nil {
		c.warn(snap.Step, dir, err)
	}
	if snap.Last {
		return nil // the checkpoint itself is on disk
	}
	return err
}

// failed reports a checkpoint that could not be written. If it is the last one, the
// finalWriter reports it at the end of the job.
func (c *checkpointer) failed(snap trainer.Snapshot, dir string, err error) error {
	if snap.Last {
		c.final.lose(lastCheckpoint, checkpoint.FileName(snap.Step), snap.Step, err)
		return errLost
	}
	c.warn(snap.Step, dir, err)
	return err
}

func (c *checkpointer) warn(step int, dir string, err error) {
	c.events.Emit(&event.CheckpointFailed{Path: filepath.Join(dir, checkpoint.FileName(step)), Step: step, Error: err.Error()})
}

// contents returns what a checkpoint of a snapshot contains. It shares the memory of
// the snapshot's state, but not of its parameters.
func (c *checkpointer) contents(snap trainer.Snapshot) (t checkpoint.Training, err error) {
	t = checkpoint.Training{Step: snap.Step, Slots: map[string][]checkpoint.Named{}, Notes: c.notes}
	values, err := valuesOf(c.values, snap.Params)
	if err != nil {
		return t, err
	}
	t.Weights = arenaTensors(snap.Params, values)
	for name, arena := range snap.State.Slots {
		t.Slots[name] = arenaTensors(snap.Params, arena)
	}
	for _, arena := range snap.State.Residuals {
		t.Residuals = append(t.Residuals, arenaTensors(snap.Params, arena))
	}
	if b := snap.Best; b.Found() && len(b.Values) > 0 {
		t.Notes = describeBest(c.notes, b)
		// With asynchronous strategies the values may have changed since, in the same step.
		if b.Step != snap.Step || !slices.Equal(b.Values, values) {
			t.Best = arenaTensors(snap.Params, b.Values)
		}
	}
	return t, nil
}

// configureSaving adds to c what --out and --resume ask for.
func (r *rank) configureSaving(ctx context.Context, c *trainer.Config) error {
	s := r.training
	if s.Spec.Saving.Dir == "" {
		return nil
	}
	r.files = checkpoint.Writer{Run: launch.Self().Tag(), Progress: r.pulse.Wrote}
	r.final = &finalWriter{dir: s.Spec.Saving.Dir, fallback: s.Spec.Saving.Fallback, quit: r.quit, events: r.events, pulse: r.pulse}
	c.SaveEvery, c.RequireSave = s.Spec.Saving.Every, s.Spec.Saving.Require
	if r.group.Rank() == 0 {
		c.Saver = &checkpointer{files: r.files, keep: s.Spec.Saving.Keep, values: c.Backend, notes: r.notes(), final: r.final, events: r.events}
	}
	var err error
	if s.Spec.Saving.Resume != "" {
		c.From, c.Best, err = r.resume(ctx, c.Backend, c.Task.Params())
	}
	c.KeepBest = r.keepsBest() && s.searchesBest(c.Best)
	return err
}

// notes describe the job in the metadata of checkpoints and weights.
func (r *rank) notes() map[string]string {
	s := r.training
	notes := catalog.Notes(s.Config, s.Dataset, r.rows)
	maps.Copy(notes, map[string]string{
		"seed":       strconv.FormatUint(s.Spec.Seed, 10),
		"workers":    strconv.Itoa(r.group.Size()),
		"batch":      strconv.Itoa(s.Batch),
		"accumulate": strconv.Itoa(s.micro),
		"reduce":     s.reduce.String(),
		"compress":   s.Compression.String(),
		"version":    build.Version(),
		"blas":       r.blas,
		"plan":       r.plan,
	})
	if text := s.Spec.strategyText(); text != allReduce {
		notes["strategy"] = text
	}
	if s.Spec.Order.HostOrder() != collective.RingOrder {
		notes["order"], notes["plan_digest"] = s.Spec.Order.Order, planDigest(r.group, r.task.Params().Grads.Len())
	}
	return notes
}
