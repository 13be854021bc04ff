package checkpoint_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/trainer/checkpoint"
)

// training returns a small training at a step.
func training(step int) checkpoint.Training {
	w := func(first float32) []checkpoint.Named {
		return []checkpoint.Named{
			{Name: "layers.0.W", Tensor: dense([]float32{first, 2, 3, 4}, 2, 2)},
			{Name: "layers.0.b", Tensor: dense([]float32{-first, .5}, 2)},
		}
	}
	return checkpoint.Training{
		Step: step, Weights: w(float32(step)),
		Slots:     map[string][]checkpoint.Named{"m": w(7), "v": w(8)},
		Residuals: [][]checkpoint.Named{w(9), w(10), w(11)},
		Notes:     map[string]string{"seed": "3", "config": "[training]\n"},
	}
}

func requireEqual(t require.TestingT, want, got checkpoint.Training) {
	require.Equal(t, want.Step, got.Step)
	require.Equal(t, want.Notes, got.Notes)
	equal := func(want, got []checkpoint.Named) {
		require.Len(t, got, len(want))
		for i, n := range want {
			require.Equal(t, n.Name, got[i].Name)
			require.Equal(t, n.Tensor.Shape(), got[i].Tensor.Shape())
			require.Equal(t, n.Tensor.Data(), got[i].Tensor.Data())
		}
	}
	equal(want.Weights, got.Weights)
	require.Len(t, got.Slots, len(want.Slots))
	for slot := range want.Slots {
		equal(want.Slots[slot], got.Slots[slot])
	}
	require.Len(t, got.Residuals, len(want.Residuals))
	for rank := range want.Residuals {
		equal(want.Residuals[rank], got.Residuals[rank])
	}
}

func TestTrainingRoundTrip(t *testing.T) {
	dir := t.TempDir()
	path, err := training(42).Write(dir)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "step-00000042.safetensors"), path)
	got, err := checkpoint.Read(path)
	require.NoError(t, err)
	requireEqual(t, training(42), got)

	f, err := checkpoint.Load(path)
	require.NoError(t, err, "it must be a valid safetensors file")
	_, ok := f.Tensor("optimizer/m/layers.0.W")
	require.True(t, ok)
}

// Any flipped bit of a checkpoint is detected, and the previous checkpoint is used.
func TestCorruptNewestIsReported(t *testing.T) {
	dir := t.TempDir()
	_, err := training(1).Write(dir)
	require.NoError(t, err)
	path, err := training(2).Write(dir)
	require.NoError(t, err)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		bad := bytes.Clone(whole)
		if rapid.Bool().Draw(t, "cut") {
			bad = bad[:rapid.IntRange(0, len(bad)-1).Draw(t, "length")]
		} else {
			bit := rapid.IntRange(0, 8*len(bad)-1).Draw(t, "bit")
			bad[bit/8] ^= 1 << (bit % 8)
		}
		require.NoError(t, os.WriteFile(path, bad, 0o644))
		got, used, broken, err := checkpoint.Latest(dir)
		require.NoError(t, err)
		require.Len(t, broken, 1)
		require.ErrorContains(t, broken[0], path)
		require.Equal(t, filepath.Join(dir, checkpoint.FileName(1)), used)
		requireEqual(t, training(1), got)
	})
	require.NoError(t, os.WriteFile(path, whole, 0o644))
	got, used, broken, err := checkpoint.Latest(dir)
	require.NoError(t, err)
	require.Empty(t, broken)
	require.Equal(t, path, used)
	requireEqual(t, training(2), got)
}

func TestLatestWithoutCheckpoints(t *testing.T) {
	dir := t.TempDir()
	_, _, broken, err := checkpoint.Latest(dir)
	require.ErrorIs(t, err, checkpoint.ErrNone)
	require.Empty(t, broken)
	_, _, _, err = checkpoint.Latest(filepath.Join(dir, "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)

	require.NoError(t, os.WriteFile(filepath.Join(dir, checkpoint.FileName(3)), []byte("x"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "step-4.safetensors"), nil, 0o644), "a file of another program")
	_, _, broken, err = checkpoint.Latest(dir)
	require.ErrorIs(t, err, checkpoint.ErrNone)
	require.Len(t, broken, 1)

	path, err := training(5).Write(dir)
	require.NoError(t, err)
	require.NoError(t, os.Rename(path, filepath.Join(dir, checkpoint.FileName(9))))
	_, _, broken, err = checkpoint.Latest(dir)
	require.ErrorIs(t, err, checkpoint.ErrNone)
	require.ErrorContains(t, broken[0], " contains step 5")

	weights := filepath.Join(dir, "model.safetensors")
	require.NoError(t, checkpoint.Save(weights, checkpoint.File{Metadata: map[string]string{"format": checkpoint.Format}}))
	_, err = checkpoint.Read(weights)
	require.ErrorContains(t, err, "not a checkpoint of a run")
}

func TestPruneKeepsTheNewest(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []int{10, 5, 100, 20} {
		_, err := training(step).Write(dir)
		require.NoError(t, err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), nil, 0o644))
	for _, c := range []struct {
		newest, keep int
		want         []int
	}{{100, 0, []int{5, 10, 20, 100}}, {100, 9, []int{5, 10, 20, 100}}, {100, 3, []int{10, 20, 100}}, {20, 2, []int{10, 20}}, {20, 1, []int{20}}} {
		require.NoError(t, checkpoint.Prune(dir, c.newest, c.keep))
		steps, err := checkpoint.Steps(dir)
		require.NoError(t, err)
		require.Equal(t, c.want, steps)
	}
	require.FileExists(t, filepath.Join(dir, "model.safetensors"))
}

func TestWriteErrors(t *testing.T) {
	dir := t.TempDir()
	one := training(1).Weights[:1]
	for want, c := range map[string]checkpoint.Training{
		"the step must be at least 0, not -1": {Step: -1},
		`cannot be named "a/b"`:               {Slots: map[string][]checkpoint.Named{"a/b": one}},
		`cannot be named ""`:                  {Slots: map[string][]checkpoint.Named{"": one}},
		`two tensors are named "layers.0.W"`:  {Weights: append(one[:1:1], one...)},
		`cannot be named "optimizer/x"`:       {Weights: []checkpoint.Named{{Name: "optimizer/x", Tensor: one[0].Tensor}}},
		`cannot be named "residual/x"`:        {Weights: []checkpoint.Named{{Name: "residual/x", Tensor: one[0].Tensor}}},
	} {
		_, err := c.Write(dir)
		require.ErrorContains(t, err, want)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// Sweep removes the leftovers of dead runs and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	left := func(name string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte("half"), 0o600))
		return path
	}
	gone := []string{left("." + checkpoint.FileName(7) + ".dead-1.00c0ffee.tmp"), left(".model.safetensors.dead-1.12345678.tmp")}
	stay := []string{
		left("." + checkpoint.FileName(7) + ".alive-2.00c0ffee.tmp"),
		left(".model.safetensors..00c0ffee.tmp"),
		left(".model.safetensors987"),
		left(".model.safetensors.swp"),
		left("model.safetensors.dead-1.00c0ffee.tmp"),
		left(".notes.dead-1.00c0ffee.tmp"),
	}
	require.NoError(t, checkpoint.Sweep(dir, func(run string) bool { return run == "dead-1" }))
	for _, path := range gone {
		require.NoFileExists(t, path)
	}
	for _, path := range stay {
		require.FileExists(t, path)
	}
	_, err := training(8).Write(dir)
	require.NoError(t, err)
	for _, path := range stay {
		require.FileExists(t, path, "writing must not remove files")
	}
}

// The name of a temporary file identifies its run, and Progress reports the bytes.
func TestWriterReportsProgress(t *testing.T) {
	dir, seen, bytes := t.TempDir(), map[string]bool{}, 0
	w := checkpoint.Writer{Run: "me-7", Progress: func(n int) {
		bytes += n
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			seen[e.Name()] = true
		}
	}}
	path, err := w.Write(dir, training(3))
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Greater(t, int64(bytes), 2*info.Size(), "bytes are hashed, written and synced")
	delete(seen, filepath.Base(path))
	require.Len(t, seen, 1)
	for name := range seen {
		require.Regexp(t, `^\.step-00000003\.safetensors\.me-7\.[0-9a-f]{8}\.tmp$`, name)
	}
	require.NoError(t, checkpoint.Sweep(dir, func(string) bool { return true }))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// Prune does not remove a directory with the name of a checkpoint.
func TestPruneKeepsDirectories(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []int{1, 9} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, checkpoint.FileName(step)), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, checkpoint.FileName(9), "x"), nil, 0o644))
	_, err := training(5).Write(dir)
	require.NoError(t, err)
	require.NoError(t, checkpoint.Prune(dir, 5, 1))
	require.DirExists(t, filepath.Join(dir, checkpoint.FileName(1)))
	require.DirExists(t, filepath.Join(dir, checkpoint.FileName(9)))
	_, used, broken, err := checkpoint.Latest(dir)
	require.NoError(t, err)
	require.Len(t, broken, 1)
	require.ErrorContains(t, broken[0], "not a regular file")
	require.Equal(t, filepath.Join(dir, checkpoint.FileName(5)), used)
}

// Training cannot resume from values that are not finite. They are not written. If
// another program wrote them, with a correct sum, the previous checkpoint is used.
func TestNotFiniteIsRejected(t *testing.T) {
	for name, x := range map[string]float32{"NaN": float32(math.NaN()), "infinite": float32(math.Inf(-1))} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := training(1).Write(dir)
			require.NoError(t, err)
			good, err := training(2).Write(dir)
			require.NoError(t, err)
			bad := training(2)
			bad.Slots["v"][1].Tensor.Data().([]float32)[1] = x
			path, err := bad.Write(dir)
			require.ErrorContains(t, err, `tensor "optimizer/v/layers.0.b" is not finite, first at element 1`)
			require.Equal(t, good, path)
			_, err = checkpoint.Read(good)
			require.NoError(t, err, "the old file must not change")

			require.NoError(t, checkpoint.WriteAnyway(good, bad))
			got, _, broken, err := checkpoint.Latest(dir)
			require.NoError(t, err)
			require.Len(t, broken, 1)
			require.ErrorContains(t, broken[0], "is not finite")
			require.Equal(t, 1, got.Step)
		})
	}
}

// On a full disk the old checkpoint stays, and nothing of the new one is left.
func TestFullDisk(t *testing.T) {
	dir := smallDisk(t)
	_, err := training(1).Write(dir)
	require.NoError(t, err)
	big := training(2)
	big.Weights[0].Tensor = dense(make([]float32, 1<<20), 1<<20)
	_, err = big.Write(dir)
	require.ErrorIs(t, err, syscall.ENOSPC)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	got, _, broken, err := checkpoint.Latest(dir)
	require.NoError(t, err)
	require.Empty(t, broken)
	requireEqual(t, training(1), got)
}

// smallDisk returns a file system of 1 MiB, or skips the test.
func smallDisk(t *testing.T) string {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("needs root on Linux to mount a small file system")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("cannot mount tmpfs: %s", bytes.TrimSpace(out))
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Error(errors.Join(err, fmt.Errorf("%s", out)))
		}
	})
	return dir
}
