package job

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// bestSpec returns the Spec of a job of 12 steps whose best evaluation is not the last: it
// evaluates after each step, and its steps are too large.
func bestSpec(t *testing.T) Spec {
	f := tinySpec(t)
	f.Steps = 12
	f.Overrides = []config.Override{{Path: "evaluation.frequency", Raw: "1"}, {Path: "optimizer.learn_rate", Raw: "0.1"}}
	f.Saving = Saving{Dir: t.TempDir(), Every: 4, Keep: 0}
	return f
}

// bestReported returns the best evaluation that a job reported, after it has checked the marks of
// the others.
func bestReported(t *testing.T, h *heard) (step int) {
	end, first, most := resultOf(t, h), true, 0.
	for _, e := range eventsOf[*event.Eval](h) {
		value := e.Metrics.Value("accuracy")
		if resumed := h.count("resumed") > 0; !resumed {
			require.Equal(t, first || value > most, e.Best, "step %d", e.Step)
		}
		most, first = max(most, value), false
		if e.Step == end.BestStep {
			require.Equal(t, value, end.BestValue)
		}
	}
	require.Equal(t, "accuracy", end.BestMetric)
	require.Positive(t, end.BestStep)
	return end.BestStep
}

// loadBest returns the SHA-256 of the best weights in a directory or checkpoint.
func loadBest(t *testing.T, path, data string) string {
	l := newLoader(t)
	l.Best = true
	trained, err := l.Load(t.Context(), path, data, true)
	require.NoError(t, err)
	return sumOf(t, trained)
}

// The weights of the best evaluation are in a file of their own and in later checkpoints.
// They are those of a run that ended there, on any number of workers.
func TestBestWeights(t *testing.T) {
	f := bestSpec(t)
	h := run(t, f)
	best := bestReported(t, h)
	require.Less(t, best, 8, "this test needs an early best")
	want := hashOf(t, filepath.Join(f.Saving.Dir, bestFile))
	require.NotEqual(t, resultOf(t, h).WeightsSHA256, want)
	require.Equal(t, want, loadBest(t, f.Saving.Dir, f.Data))
	require.Equal(t, want, loadBest(t, stepFile(f.Saving.Dir, 8), f.Data))
	file, err := checkpoint.Load(filepath.Join(f.Saving.Dir, bestFile))
	require.NoError(t, err)
	require.Equal(t, "12", file.Metadata[noteAfter])

	short := f
	short.Steps, short.Saving = best, Saving{Dir: t.TempDir()}
	ended := run(t, short)
	require.Equal(t, want, resultOf(t, ended).WeightsSHA256)
	at, err := checkpoint.Read(stepFile(short.Saving.Dir, best))
	require.NoError(t, err)
	require.Empty(t, at.Best, "they are the weights")
	require.Equal(t, want, loadBest(t, stepFile(short.Saving.Dir, best), f.Data))

	alone := f
	alone.Workers, alone.Accumulate, alone.Saving = 1, 2, Saving{Dir: t.TempDir()}
	require.Equal(t, best, bestReported(t, run(t, alone)))
	require.Equal(t, want, hashOf(t, filepath.Join(alone.Saving.Dir, bestFile)))
}

// A resumed run finds the best evaluation before it, on every machine. After a crash,
// the newest checkpoint has its weights.
func TestBestSurvives(t *testing.T) {
	f := bestSpec(t)
	best := bestReported(t, run(t, f))
	want := hashOf(t, filepath.Join(f.Saving.Dir, bestFile))
	require.NoError(t, os.Remove(stepFile(f.Saving.Dir, 12)))
	for _, name := range []string{bestFile, weightsFile} {
		require.NoError(t, os.Remove(filepath.Join(f.Saving.Dir, name)))
	}
	require.Equal(t, want, loadBest(t, f.Saving.Dir, f.Data), "from step 8")

	again := f
	again.Saving = Saving{Resume: f.Saving.Dir}
	require.Equal(t, best, bestReported(t, run(t, again)))
	require.Equal(t, want, hashOf(t, filepath.Join(f.Saving.Dir, bestFile)))
	idle := run(t, again)
	require.Equal(t, best, bestReported(t, idle), "nothing is left to do")
	require.Zero(t, idle.count("weights"))
	require.Equal(t, want, hashOf(t, filepath.Join(f.Saving.Dir, bestFile)))

	dirs := [3]string{t.TempDir(), t.TempDir(), t.TempDir()}
	machines := func(steps int, change func(machine int, s *Saving)) []*outcome {
		return trainRanks(t, f, func(rank int, f *Spec) {
			f.Steps, f.Saving = steps, Saving{Dir: dirs[rank/2], Every: 4}
			change(rank/2, &f.Saving)
		})
	}
	for _, o := range machines(12, func(int, *Saving) {}) {
		require.NoError(t, o.err)
	}
	sums := map[string]bool{}
	for _, dir := range dirs {
		sums[hashOf(t, filepath.Join(dir, bestFile))] = true
	}
	require.Len(t, sums, 1, "all machines have the same")
	require.NoError(t, os.Rename(stepFile(dirs[0], 8), stepFile(dirs[1], 8)))
	require.NoError(t, os.RemoveAll(dirs[0]))
	require.NoError(t, os.Mkdir(dirs[0], 0o700))
	require.NoError(t, os.Remove(filepath.Join(dirs[2], bestFile)))
	for _, o := range machines(12, func(machine int, s *Saving) { s.Resume = s.Dir }) {
		require.NoError(t, o.err)
	}
	for _, dir := range dirs {
		sums[hashOf(t, filepath.Join(dir, bestFile))] = true
	}
	require.Len(t, sums, 1, "one machine had the checkpoint, and rank 0 is on another")
}

// With a strategy in which only rank 0 evaluates, every machine gets the best weights that rank 0
// found, in directories of their own or in one, and after it resumes.
func TestBestOfRankZero(t *testing.T) {
	f := bestSpec(t)
	f.Strategy = psPeers
	shared := t.TempDir()
	for _, dirs := range [][3]string{{t.TempDir(), t.TempDir(), t.TempDir()}, {shared, shared, shared}} {
		for _, steps := range []int{12, 16} {
			all := trainRanks(t, f, func(rank int, f *Spec) {
				f.Steps, f.Saving = steps, Saving{Dir: dirs[rank/2], Every: 4}
				if steps > 12 {
					f.Saving.Resume = f.Saving.Dir
				}
			})
			require.NoError(t, all[0].err)
			best := resultOf(t, &all[0].heard)
			require.Positive(t, best.BestStep)
			sums := map[string]bool{}
			for machine, dir := range dirs {
				o := all[2*machine]
				require.NoError(t, o.err)
				require.Equal(t, best.BestStep, resultOf(t, &o.heard).BestStep)
				require.Equal(t, best.BestValue, resultOf(t, &o.heard).BestValue)
				file, err := checkpoint.Load(filepath.Join(dir, bestFile))
				require.NoError(t, err)
				require.Equal(t, strconv.Itoa(best.BestStep), file.Metadata["step"])
				require.Equal(t, strconv.Itoa(steps), file.Metadata[noteAfter])
				sums[hashOf(t, filepath.Join(dir, bestFile))] = true
			}
			require.Len(t, sums, 1, "all machines have the same")
		}
	}
}

// Rank 0 may have kept no values, if only another machine has --out.
func TestBestWithoutValues(t *testing.T) {
	want := trainer.Best{Step: 4, Metric: trainer.Metric{Name: "accuracy", Value: .5}}
	collectivetest.Ranks(t, 3, func(ctx context.Context, g *collective.Group) {
		r, own := &rank{training: &Training{evalEvery: 1}, group: g, leader: true}, trainer.Best{Step: 2, Values: []float32{1}}
		r.training.Spec.Strategy, r.training.Spec.Place.Nodes, r.training.Spec.Saving.Dir = psAsync, 3, "out"
		if g.Rank() == 0 {
			own = want
		}
		got, err := r.bestOfAll(ctx, trainer.Best{}, own)
		require.NoError(t, err)
		require.Equal(t, want, got, "without values of an earlier one")
	})
}

// A run that resumes on other data searches anew: the best evaluation before was of other rows.
func TestBestOfOtherData(t *testing.T) {
	f := bestSpec(t)
	best := bestReported(t, run(t, f))
	require.Less(t, best, 12, "this test needs an early best")
	train, test := data.Generate(data.DigitsOptions{Train: 50, Test: 10, Side: 8, Seed: 1})
	other := t.TempDir()
	require.NoError(t, data.WriteMNIST(other, train, test))
	again := f
	again.Data, again.Steps, again.Saving = "mnist:"+other, 14, Saving{Dir: t.TempDir(), Resume: f.Saving.Dir}
	h := run(t, again)
	require.Contains(t, h.said(), "--data (mnist:"+other+", was "+f.Data+"), the best evaluation, which is dropped because it was of other data; the result")
	require.Greater(t, resultOf(t, h).BestStep, 12)

	again.Data, again.Saving.Dir = f.Data, t.TempDir()
	h = run(t, again)
	require.Empty(t, h.said())
	require.Equal(t, best, resultOf(t, h).BestStep)
}

// Without evaluations between steps there is nothing to choose from, and --best says so.
func TestNoBest(t *testing.T) {
	f := bestSpec(t)
	f.Overrides[0].Raw = "0"
	h := run(t, f)
	require.Zero(t, resultOf(t, h).BestStep)
	require.NoFileExists(t, filepath.Join(f.Saving.Dir, bestFile))
	require.NoError(t, os.WriteFile(filepath.Join(f.Saving.Dir, bestFile), []byte("of an earlier run"), 0o600))
	for _, steps := range []int{12, 14} { // nothing is left to do, and then a little
		again := f
		again.Steps, again.Saving = steps, Saving{Resume: f.Saving.Dir}
		h = run(t, again)
		require.Equal(t, steps, resultOf(t, h).Steps)
		require.Zero(t, resultOf(t, h).BestStep)
		require.NoFileExists(t, filepath.Join(f.Saving.Dir, bestFile))
	}
	l := newLoader(t)
	l.Best = true
	for _, path := range []string{f.Saving.Dir, stepFile(f.Saving.Dir, 4), stepFile(f.Saving.Dir, 14)} {
		_, err := l.Load(t.Context(), path, f.Data, true)
		require.ErrorIs(t, err, errNoBest)
		require.ErrorContains(t, err, path)
	}
	_, err := l.Load(t.Context(), filepath.Join(f.Saving.Dir, weightsFile), f.Data, true)
	require.ErrorContains(t, err, "--best needs the --out of a run, or a checkpoint in it")
	_, err = l.Load(t.Context(), t.TempDir(), f.Data, true)
	require.ErrorIs(t, err, errNoBest)
}

// A checkpoint has the values of the best evaluation unless they are its own: with ps-peers,
// values may change within a step.
func TestBestInStep(t *testing.T) {
	b := cpu.New(cpu.Options{})
	defer b.Close()
	m, err := nn.NewClassifier(b, models.ReluReluSoftmax(4, 0), []int{2}, 2, 1)
	require.NoError(t, err)
	own := slices.Clone(m.Params().Values.Float32s())
	changed := slices.Clone(own)
	changed[0]++
	for _, c := range []struct {
		step   int
		values []float32
		kept   bool
	}{{3, own, false}, {3, changed, true}, {2, changed, true}, {2, own, true}} {
		best := trainer.Best{Step: c.step, Metric: trainer.Metric{Name: "accuracy", Value: .5}, Values: c.values}
		at, err := (&checkpointer{values: b, notes: map[string]string{}}).contents(trainer.Snapshot{Step: 3, Params: m.Params(), Best: best})
		require.NoError(t, err)
		require.Equal(t, c.kept, at.Best != nil)
		got, weights := bestOf(at)
		require.Equal(t, c.step, got.Step)
		values, err := tensorArena(m.Params(), weights)
		require.NoError(t, err)
		require.Equal(t, c.values, values)
	}
}

// The notes of a damaged checkpoint are not believed.
func TestBestNotes(t *testing.T) {
	f := bestSpec(t)
	run(t, f)
	at, err := checkpoint.Read(stepFile(f.Saving.Dir, 8))
	require.NoError(t, err)
	b, weights := bestOf(at)
	require.True(t, b.Found())
	require.Equal(t, at.Best, weights)
	for note, value := range map[string]string{noteBestStep: "", noteBestValue: "x", noteBestMetric: ""} {
		notes := at.Notes[note]
		at.Notes[note] = value
		b, _ := bestOf(at)
		require.False(t, b.Found(), note)
		at.Notes[note] = notes
	}
	at.Best = nil
	b, _ = bestOf(at)
	require.False(t, b.Found(), "without weights")
}
