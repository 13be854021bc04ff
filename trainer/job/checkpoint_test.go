package job

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/atomicfile"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// A swappable is a directory behind a symbolic link. Tests swap it during a job.
type swappable struct{ link, dir string }

func newSwappable(t *testing.T) swappable {
	s := swappable{filepath.Join(t.TempDir(), "out"), t.TempDir()}
	s.set(t, s.dir)
	return s
}

// set makes the link point to a directory.
func (s swappable) set(t *testing.T, dir string) {
	_ = os.Remove(s.link)
	require.NoError(t, os.Symlink(dir, s.link))
}

// unwritable returns a directory in which not even root can create files.
func unwritable(t *testing.T) string {
	const dir = "/proc/self/fdinfo"
	if f, err := os.CreateTemp(dir, "x"); err == nil {
		_ = f.Close()
		t.Skip("this machine has no directory that root cannot write to")
	}
	return dir
}

// afterStep returns a function for heard.on that calls do once the job has finished a step.
func afterStep(step int, do func()) func(event.Event) {
	return func(e event.Event) {
		if s, ok := e.(*event.Step); ok && s.Step == step {
			do()
		}
	}
}

// fromStep is afterStep for strategies that do not report every step: it calls do once, after
// that step or the first later one that is reported.
func fromStep(step int, do func()) func(event.Event) {
	var once sync.Once
	return func(e event.Event) {
		if s, ok := e.(*event.Step); ok && s.Step >= step {
			once.Do(do)
		}
	}
}

// If a checkpoint cannot be written, the job reports it, continues, and writes the next one.
// Earlier checkpoints stay intact.
func TestCheckpointCannotBeWritten(t *testing.T) {
	f, out, readOnly := tinySpec(t), newSwappable(t), unwritable(t)
	want := resultOf(t, run(t, f)).WeightsSHA256
	f.Saving = Saving{Dir: out.link, Every: 1}
	h := &heard{}
	h.on = func(e event.Event) {
		afterStep(3, func() { out.set(t, readOnly) })(e)
		afterStep(5, func() { out.set(t, out.dir) })(e)
	}
	require.NoError(t, Run(t.Context(), f, Options{Display: h, Stderr: h}))
	require.Equal(t, want, resultOf(t, h).WeightsSHA256)
	var failed []int
	for _, e := range eventsOf[*event.CheckpointFailed](h) {
		failed = append(failed, e.Step)
		require.Equal(t, stepFile(out.link, e.Step), e.Path)
		require.NotEmpty(t, e.Error)
		require.False(t, e.Last)
	}
	require.Equal(t, []int{3, 4}, failed)
	require.Zero(t, h.count("save_retry"), "only the last one is retried")
	for _, step := range []int{1, 2, 5, 6} {
		got, err := checkpoint.Read(stepFile(out.dir, step))
		require.NoError(t, err)
		require.Equal(t, step, got.Step)
	}
	require.Equal(t, []string{bestFile, weightsFile, checkpoint.FileName(1), checkpoint.FileName(2), checkpoint.FileName(5), checkpoint.FileName(6)}, namesIn(t, out.dir))
}

// With --require-checkpoint the same failure ends the job at that step. What the other ranks
// say about rank 0 is shown only on request, because the error says it.
func TestRequiredCheckpointCannotBeWritten(t *testing.T) {
	readOnly := unwritable(t)
	for _, verbatim := range []bool{false, true} {
		f, out := tinySpec(t), newSwappable(t)
		f.Saving = Saving{Dir: out.link, Every: 2, Require: true}
		h := &heard{on: func(e event.Event) {
			afterStep(3, func() { out.set(t, readOnly) })(e)
			afterStep(5, func() { out.set(t, out.dir) })(e) // never: step 4 is the last
		}}
		_, err := runError(t, t.Context(), f, Options{Display: h, Verbatim: verbatim})
		var unsaved *trainer.SaveError
		require.ErrorAs(t, err, &unsaved)
		require.Equal(t, 4, unsaved.Step)
		require.False(t, unsaved.Last)
		var end *crew.EndError
		require.ErrorAs(t, err, &end)
		require.Equal(t, 4, h.count("step"))
		require.Zero(t, h.count("result"))
		require.Zero(t, h.count("weights"))
		step, _ := Newest(out.dir)
		require.Equal(t, 2, step)
		lost := eventsOf[*event.Lost](h)
		if !verbatim {
			require.Empty(t, lost)
			continue
		}
		require.Len(t, lost, 1)
		require.Equal(t, 0, lost[0].Rank)
		require.Equal(t, 1, lost[0].SeenBy)
	}
}

// inBubble runs a job with the fake clock of synctest, so that a minute of retries takes no
// time. It returns how long the job took by that clock.
func inBubble(t *testing.T, f Spec, h *heard) (took time.Duration, err error) {
	s, err := f.Settle()
	require.NoError(t, err)
	rows, err := s.Problem.Open(t.Context())
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		err = s.trainInProcess(t.Context(), rows, Options{Display: h, Stderr: h})
		took = time.Since(begin)
	})
	return took, err
}

// The last checkpoint and the weights are retried until the directory is back.
func TestDirectoryComesBack(t *testing.T) {
	f, out, readOnly := tinySpec(t), newSwappable(t), unwritable(t)
	f.Saving = Saving{Dir: out.link}
	h := &heard{on: func(e event.Event) {
		afterStep(6, func() { out.set(t, readOnly) })(e)
		if _, ok := e.(*event.SaveRetry); ok {
			out.set(t, out.dir)
		}
	}}
	took, err := inBubble(t, f, h)
	require.NoError(t, err)
	require.Equal(t, retryFirst, took)
	require.Equal(t, 1, h.count("save_retry"))
	require.Zero(t, h.count("checkpoint_failed"))
	require.Equal(t, []string{bestFile, weightsFile, checkpoint.FileName(6)}, namesIn(t, out.dir))
	require.Equal(t, resultOf(t, h).WeightsSHA256, hashOf(t, filepath.Join(out.dir, weightsFile)))
}

// A job can be resumed from its fallback directory. Other files there stay.
func TestResumeFromTheFallback(t *testing.T) {
	f, out, readOnly := tinySpec(t), newSwappable(t), unwritable(t)
	whole := resultOf(t, run(t, f)).WeightsSHA256
	spare := t.TempDir()
	other := stepFile(spare, 99)
	require.NoError(t, os.WriteFile(other, []byte("another file"), 0o600))
	f.Steps, f.Saving = 4, Saving{Dir: out.link, Fallback: spare, Every: 2, Keep: 1}
	h := &heard{on: afterStep(4, func() { out.set(t, readOnly) })}
	took, err := inBubble(t, f, h)
	require.NoError(t, err)
	require.Equal(t, retryTime, took)
	saved := eventsOf[*event.Checkpoint](h)
	require.Len(t, saved, 2)
	require.Equal(t, &event.Checkpoint{Path: stepFile(spare, 4), Step: 4, InsteadOf: stepFile(out.link, 4)}, saved[1])
	require.FileExists(t, other)
	require.FileExists(t, filepath.Join(spare, weightsFile))
	require.NoError(t, os.Remove(other))

	again, main := f, t.TempDir()
	again.Steps, again.Saving = 6, Saving{Resume: spare}
	require.NoError(t, os.CopyFS(main, os.DirFS(spare)))
	require.NoError(t, os.Rename(stepFile(main, 4), stepFile(main, 2))) // what the first job has kept in --out
	f.Steps, f.Saving = 6, Saving{Dir: main, Fallback: spare, Resume: spare}
	require.Equal(t, whole, resultOf(t, run(t, f)).WeightsSHA256, "the same command with --resume")
	require.FileExists(t, stepFile(main, 6))
	_, err = runError(t, t.Context(), f, Options{})
	require.ErrorContains(t, err, "--out "+main+" contains later checkpoints than --resume "+spare+"; resume those with --resume "+main)
	f.Saving.Resume = main
	run(t, f)
	require.Equal(t, whole, resultOf(t, run(t, again)).WeightsSHA256)
}

// A failure at a checkpoint is a warning or, with --require-checkpoint, the end of the job.
func TestPruneFails(t *testing.T) {
	for _, strict := range []bool{false, true} {
		f := tinySpec(t)
		f.Saving = Saving{Dir: t.TempDir(), Every: 2, Keep: 1, Require: strict}
		h := &heard{on: afterStep(3, func() { // a directory that is not empty has the name of a checkpoint
			require.NoError(t, os.Rename(stepFile(f.Saving.Dir, 2), filepath.Join(f.Saving.Dir, "kept")))
			require.NoError(t, os.MkdirAll(filepath.Join(stepFile(f.Saving.Dir, 4), "sub"), 0o700))
		})}
		err := Run(t.Context(), f, Options{Display: h, Stderr: h})
		failed := eventsOf[*event.CheckpointFailed](h)
		require.Len(t, failed, 1)
		require.Equal(t, 4, failed[0].Step)
		require.FileExists(t, filepath.Join(f.Saving.Dir, "kept"), "not named as a checkpoint")
		if strict {
			require.ErrorContains(t, err, "saving step 4: ")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, 6, resultOf(t, h).Steps)
	}
}

// A process that is killed between writing a checkpoint and renaming it leaves a temporary
// file. Resuming uses the checkpoint before, and removes the file.
func TestKilledWhileWriting(t *testing.T) {
	f := tinySpec(t)
	whole := resultOf(t, run(t, f)).WeightsSHA256
	f.Steps, f.Saving.Dir = 3, t.TempDir()
	run(t, f)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), envHalf+"="+stepFile(f.Saving.Dir, 5))
	_, err := child.StdinPipe()
	require.NoError(t, err)
	stdout, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	said, err := io.ReadAll(io.LimitReader(stdout, int64(len(halfWritten))))
	require.NoError(t, err)
	require.Equal(t, halfWritten, string(said))
	require.Len(t, namesIn(t, f.Saving.Dir), 4)
	f.Steps, f.Saving = 6, Saving{Resume: f.Saving.Dir}

	alive := f
	alive.Steps = 4
	run(t, alive)
	require.Len(t, namesIn(t, f.Saving.Resume), 5, "the file of a live process stays")

	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	require.Equal(t, whole, resultOf(t, run(t, f)).WeightsSHA256)
	require.Equal(t, []string{bestFile, weightsFile, checkpoint.FileName(3), checkpoint.FileName(4), checkpoint.FileName(6)}, namesIn(t, f.Saving.Resume))
}

const (
	envHalf     = "RINGTRAIN_TEST_HALF_A_CHECKPOINT" // path of the checkpoint that the child does not finish
	halfWritten = "half"
)

// writeHalf writes part of a checkpoint as a checkpointer does, reports that on stdout, and
// waits until it is killed.
func writeHalf(path string) error {
	file, err := atomicfile.Create(path, atomicfile.Options{Tag: launch.Self().Tag()})
	if err != nil {
		return err
	}
	if _, err := file.Write(make([]byte, 1000)); err != nil {
		return err
	}
	if _, err := io.WriteString(os.Stdout, halfWritten); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// A checkpoint describes its job, and contains all slots and residuals.
func TestCheckpointContents(t *testing.T) {
	f := tinySpec(t)
	f.Saving.Dir, f.Gradients.Compress, f.Seed, f.Accumulate, f.Gradients.Reduce = t.TempDir(), "topk:0.1", 7, 2, "sum"
	run(t, f)
	at6, err := checkpoint.Read(stepFile(f.Saving.Dir, 6))
	require.NoError(t, err)
	s, err := f.Settle()
	require.NoError(t, err)
	rows, err := s.Problem.Open(t.Context())
	require.NoError(t, err)
	for note, want := range map[string]string{"data_sha256": rows.Sum(), "seed": "7", "accumulate": "2", "reduce": "sum", "compress": "topk:0.1", "config": s.Config.Text(), "order": ""} {
		require.Equal(t, want, at6.Notes[note], note)
	}
	require.NotEmpty(t, at6.Slots)
	for name, slot := range at6.Slots {
		require.Len(t, slot, len(at6.Weights), name)
	}
	require.Len(t, at6.Residuals, 2, "one for each rank")
	for _, residual := range at6.Residuals {
		require.Len(t, residual, len(at6.Weights))
	}

	f.Saving.Dir, f.Order.Order, f.Gradients.Compress = t.TempDir(), "any", "none"
	run(t, f)
	at6, err = checkpoint.Read(stepFile(f.Saving.Dir, 6))
	require.NoError(t, err)
	require.Equal(t, "any", at6.Notes["order"])
	require.Len(t, at6.Notes["plan_digest"], 16)
}

// Temporary files carry the tag of their process, by which later jobs recognise them.
func TestTemporaryFilesAreTagged(t *testing.T) {
	f := tinySpec(t)
	f.Saving = Saving{Dir: t.TempDir(), Require: true, Every: 3}
	s := describe(t, f)
	views, transports := collective.Local(2)
	for _, g := range collectivetest.Groups(t, views, transports, collective.Options{}) {
		rows, err := s.Problem.Open(t.Context())
		require.NoError(t, err)
		r := &rank{training: s, group: g, rows: rows}
		var c trainer.Config
		require.NoError(t, r.configureSaving(t.Context(), &c))
		require.Equal(t, launch.Self().Tag(), r.files.Run)
		require.Equal(t, g.Rank() == 0, c.Saver != nil, "only rank 0 writes checkpoints")
		require.True(t, c.RequireSave)
		require.Equal(t, 3, c.SaveEvery)
	}
}
