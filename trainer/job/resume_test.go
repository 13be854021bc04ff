package job

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// A resumed job ends with the weights of an uninterrupted one if it is the same job. With
// other numbers of workers it continues from the same step, and says what differs.
func TestResumeWithOtherNumbersOfWorkers(t *testing.T) {
	for _, compress := range []string{"none", "bf16", "int8"} {
		f := tinySpec(t)
		f.Gradients.Compress, f.Steps = compress, 8
		whole := resultOf(t, run(t, f)).WeightsSHA256
		for _, c := range []struct {
			before, after int
			same          bool
		}{{2, 2, true}, {2, 1, false}, {2, 3, false}, {3, 2, false}, {1, 2, false}} {
			f := f
			f.Workers, f.Steps, f.Saving.Dir = c.before, 5, t.TempDir()
			run(t, f)
			at5 := stepFile(f.Saving.Dir, 5)
			f.Workers, f.Steps, f.Saving = c.after, 8, Saving{Dir: t.TempDir(), Resume: f.Saving.Dir}
			h := run(t, f)
			require.Equal(t, []*event.Resumed{{Path: at5, Step: 5}}, eventsOf[*event.Resumed](h))
			require.Equal(t, 6, eventsOf[*event.Step](h)[0].Step)
			require.Equal(t, 3, h.count("step"))
			end := resultOf(t, h)
			require.Equal(t, 8, end.Steps)
			require.Equal(t, c.after, end.Workers)
			if c.same {
				require.Equal(t, whole, end.WeightsSHA256, compress)
				require.Empty(t, h.said())
				continue
			}
			require.NotEqual(t, whole, end.WeightsSHA256)
			require.Contains(t, h.said(), "changed since "+at5+": ")
			require.Contains(t, h.said(), "the number of workers (")
			if compress == "none" {
				require.NotContains(t, h.said(), "residuals")
			} else {
				require.Contains(t, h.said(), "compression residuals of ")
			}
		}
	}
}

// Any machine may be the one with the checkpoint. All continue from it, with the residuals
// of all ranks, and the machine that has it reports it.
func TestResumeFromAnyMachine(t *testing.T) {
	f := tinySpec(t)
	f.Gradients.Compress = "int8"
	whole := resultOf(t, &trainRanks(t, f, unchanged)[0].heard).WeightsSHA256
	have := t.TempDir()
	trainRanks(t, f, func(_ int, f *Spec) { f.Steps, f.Saving.Dir = 4, have })
	for source := range 3 {
		missing, out := filepath.Join(t.TempDir(), "none"), t.TempDir()
		all := trainRanks(t, f, func(rank int, f *Spec) {
			f.Saving = Saving{Dir: out, Resume: missing}
			if rank/2 == source {
				f.Saving.Resume = have
			}
		})
		for rank, o := range all {
			require.NoError(t, o.err)
			if rank%2 == 1 {
				continue
			}
			require.Equal(t, whole, resultOf(t, &o.heard).WeightsSHA256)
			require.Equal(t, 5, eventsOf[*event.Step](&o.heard)[0].Step)
			if rank/2 == source {
				require.Equal(t, []*event.Resumed{{Path: stepFile(have, 4), Step: 4}}, eventsOf[*event.Resumed](&o.heard))
			} else {
				require.Zero(t, o.count("resumed"))
			}
		}
		at6, err := checkpoint.Read(stepFile(out, 6))
		require.NoError(t, err)
		require.Len(t, at6.Residuals, 6)
	}
}

// All machines resume from the newest intact checkpoint of any of them.
func TestResumeFromTheNewestOfAllMachines(t *testing.T) {
	f := tinySpec(t)
	early, late := t.TempDir(), t.TempDir()
	trainRanks(t, f, func(_ int, f *Spec) { f.Steps, f.Saving.Dir = 2, early })
	trainRanks(t, f, func(_ int, f *Spec) { f.Steps, f.Saving = 4, Saving{Dir: late, Every: 3} })
	resume := func() []*outcome {
		return trainRanks(t, f, func(rank int, f *Spec) {
			f.Saving = Saving{Dir: filepath.Join(t.TempDir(), "out"), Resume: []string{early, late, "none"}[rank/2]}
			require.NoError(t, os.Mkdir(f.Saving.Dir, 0o700))
		})
	}
	all := resume()
	require.Zero(t, all[0].count("resumed"))
	require.Equal(t, 4, eventsOf[*event.Resumed](&all[2].heard)[0].Step)

	require.NoError(t, os.Truncate(stepFile(late, 4), 200))
	require.Equal(t, stepFile(late, 3), eventsOf[*event.Resumed](&resume()[2].heard)[0].Path)
	require.NoError(t, os.Truncate(stepFile(late, 3), 200))
	all = resume()
	require.Equal(t, stepFile(early, 2), eventsOf[*event.Resumed](&all[0].heard)[0].Path)
	require.Zero(t, all[2].count("resumed"))
}

// All ranks name the machines without --resume.
func TestResumeMissing(t *testing.T) {
	f, dir := tinySpec(t), t.TempDir()
	for _, o := range trainRanks(t, f, func(rank int, f *Spec) {
		f.Saving.Init = filepath.Join(dir, "none") // --resume wins
		if rank/2 == 1 {
			f.Saving.Resume = dir
		}
	}) {
		var usage *crew.UsageError
		require.ErrorAs(t, o.err, &usage)
		require.EqualError(t, o.err, "--resume is missing on a and c: give it on every machine, also on those without a checkpoint")
	}
}

// If no machine has a checkpoint, all ranks say so. If one machine's checkpoint does not fit,
// or is beyond the last step, the others get an error that names its rank.
func TestResumeRefusedOnMachines(t *testing.T) {
	f := tinySpec(t)
	empty := t.TempDir()
	for _, o := range trainRanks(t, f, func(_ int, f *Spec) { f.Saving = Saving{Dir: empty, Resume: empty} }) {
		var usage *crew.UsageError
		require.ErrorAs(t, o.err, &usage)
		require.ErrorContains(t, o.err, "--resume "+empty+": no machine has an intact checkpoint there")
		require.Zero(t, o.count("step"))
	}
	wide, late := f, f
	wide.Overrides = []config.Override{{Path: "model.hidden_width", Raw: "9"}}
	wide.Saving.Dir, late.Saving.Dir, late.Steps = t.TempDir(), t.TempDir(), 7
	run(t, wide)
	run(t, late)
	for dir, want := range map[string]string{
		wide.Saving.Dir: "it does not fit the model: its layers.0.W has shape [9 64], the model's [8 64]",
		late.Saving.Dir: "is at step 7, beyond the 6 of this run: raise --steps",
	} {
		out := t.TempDir()
		for rank, o := range trainRanks(t, f, func(rank int, f *Spec) {
			f.Saving = Saving{Dir: out, Resume: empty}
			if rank/2 == 1 {
				f.Saving.Resume = dir
			}
		}) {
			require.ErrorContains(t, o.err, want, "rank %d", rank)
			require.Zero(t, o.count("step"))
			var mistake *crew.UsageError
			require.ErrorAs(t, o.err, &mistake, "a mistake on one machine ends the job with the same exit code on all")
			if rank != 2 {
				require.ErrorContains(t, o.err, "rank 2 (local/2): ")
			}
		}
	}
}

// If the newest checkpoint is corrupt, the job warns and resumes from the one before.
func TestResumeFromTheOneBefore(t *testing.T) {
	f := tinySpec(t)
	whole := resultOf(t, run(t, f)).WeightsSHA256
	f.Steps, f.Saving = 4, Saving{Dir: t.TempDir(), Every: 2}
	run(t, f)
	text, err := os.ReadFile(stepFile(f.Saving.Dir, 4))
	require.NoError(t, err)
	text[len(text)/2] ^= 8
	require.NoError(t, os.WriteFile(stepFile(f.Saving.Dir, 4), text, 0o600))
	f.Steps, f.Saving = 6, Saving{Resume: f.Saving.Dir}
	h := run(t, f)
	require.Equal(t, 2, eventsOf[*event.Resumed](h)[0].Step)
	require.Equal(t, whole, resultOf(t, h).WeightsSHA256)
	require.Contains(t, h.said(), stepFile(f.Saving.Resume, 4))
	require.Contains(t, h.said(), "; resuming from the one before\n")
	require.NotContains(t, h.said(), "changed since")
	require.Equal(t, []int{4, 6}, []int{eventsOf[*event.Step](h)[1].Step, eventsOf[*event.Checkpoint](h)[0].Step}, "step 4 is trained again")
}

// Resuming a finished job reports its result and writes nothing, unless the weights are
// missing or differ.
func TestResumeAtTheEnd(t *testing.T) {
	f := tinySpec(t)
	f.Saving.Dir = t.TempDir()
	done := resultOf(t, run(t, f))
	path, old := filepath.Join(f.Saving.Dir, weightsFile), time.Unix(1e9, 0)
	require.NoError(t, os.Chtimes(path, old, old))
	f.Saving = Saving{Resume: f.Saving.Dir}
	h := run(t, f)
	for _, kind := range []string{"step", "checkpoint", "weights"} {
		require.Zero(t, h.count(kind), kind)
	}
	again := resultOf(t, h)
	require.Equal(t, done.WeightsSHA256, again.WeightsSHA256)
	require.Equal(t, done.Metrics, again.Metrics)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.True(t, old.Equal(info.ModTime()), "the file is not written again")

	require.NoError(t, os.Remove(path))
	require.Equal(t, 1, run(t, f).count("weights"))
	require.NoError(t, os.WriteFile(path, []byte("not weights"), 0o600))
	require.Equal(t, 1, run(t, f).count("weights"))
	require.Equal(t, done.WeightsSHA256, hashOf(t, path))
}
