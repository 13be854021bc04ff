package sgd_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/sgd"
)

// A restored training has the bits of one that was not interrupted, whether a new SGD
// continues it or the one that went on.
func TestRestore(t *testing.T) {
	dir := t.TempDir()
	s := open(t, sgd.Options{Workers: 2, Devices: 2})
	steps(t, s, 7)
	path, err := s.Checkpoint(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, checkpoint.FileName(7)), path)
	losses := steps(t, s, 5)
	want := hash(t, s)

	for name, again := range map[string]*sgd.SGD{"new": open(t, sgd.Options{Workers: 4, Devices: 1}), "same": s} {
		require.NoError(t, again.Restore(t.Context(), path), name)
		require.Equal(t, 7, again.Steps(), name)
		require.Equal(t, losses, steps(t, again, 5), name)
		require.Equal(t, want, hash(t, again), name)
	}
}

// A file that does not fit changes nothing.
func TestRestoreRefuses(t *testing.T) {
	dir := t.TempDir()
	s := open(t, sgd.Options{Workers: 2, Devices: 1})
	steps(t, s, 2)
	path, err := s.Checkpoint(t.Context(), dir)
	require.NoError(t, err)
	good, err := checkpoint.Read(path)
	require.NoError(t, err)
	before := hash(t, s)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	text[len(text)-1]++
	corrupt := filepath.Join(dir, "corrupt")
	require.NoError(t, os.WriteFile(corrupt, text, 0o600))
	write := func(step int, change func(*checkpoint.Training)) string {
		t.Helper()
		changed, err := checkpoint.Read(path)
		require.NoError(t, err)
		changed.Step = step
		change(&changed)
		file, err := changed.Write(dir)
		require.NoError(t, err)
		return file
	}
	for file, want := range map[string]string{
		filepath.Join(dir, "none"): "no such file",
		corrupt:                    "corrupt: the contents have SHA-256",
		write(10, func(c *checkpoint.Training) { c.Weights = c.Weights[1:] }):                  `does not fit the model: there is no tensor "layers.0.W"`,
		write(11, func(c *checkpoint.Training) { delete(c.Slots, optim.SlotV) }):               `slot "v" does not fit the model: there is no tensor "layers.0.W"`,
		write(12, func(c *checkpoint.Training) { c.Slots["other"] = good.Slots[optim.SlotV] }): `has a slot "other", which the optimizer does not keep`,
	} {
		require.ErrorContains(t, s.Restore(t.Context(), file), want)
		require.Equal(t, 2, s.Steps())
		require.Equal(t, before, hash(t, s), want)
	}
	steps(t, s, 1) // it is not broken
}

// Only the weights of rank 0 count. The others learn whether they fit.
func TestSetWeightsInProcesses(t *testing.T) {
	one := open(t, sgd.Options{Workers: 1, Devices: 1})
	steps(t, one, 3)
	good, err := one.Weights(t.Context())
	require.NoError(t, err)
	want := hash(t, one)
	collectivetest.Run(t, collectivetest.Local(t, 2), func(ctx context.Context, g *collective.Group) {
		s, err := sgd.Join(ctx, g, creator(2, 1), sgd.Options{Workers: 2, Devices: 1, Seed: seed})
		if !assert.NoError(t, err) {
			return
		}
		defer s.Close()
		weights, text := good[1:], `sgd: setting the weights: there is no tensor "layers.0.W"`
		if g.Rank() > 0 {
			weights, text = good, "sgd: setting the weights: those of worker 0, device 0 do not fit the model; its error says why"
		}
		assert.EqualError(t, s.SetWeights(ctx, weights), text)
		weights = good
		if g.Rank() > 0 {
			weights = good[1:]
		}
		assert.NoError(t, s.SetWeights(ctx, weights))
		got, err := s.Weights(ctx)
		assert.NoError(t, err)
		sum, err := checkpoint.Hash(got)
		assert.NoError(t, err)
		assert.Equal(t, want, sum)
		assert.NoError(t, g.Barrier(ctx))
	})
}

// Only the process of rank 0 writes and reads. The others learn whether it could.
func TestRestoreInProcesses(t *testing.T) {
	dir, empty := t.TempDir(), t.TempDir()
	collectivetest.Run(t, collectivetest.Local(t, 2), func(ctx context.Context, g *collective.Group) {
		s, err := sgd.Join(ctx, g, creator(2, 1), sgd.Options{Workers: 2, Devices: 1, Seed: seed})
		if !assert.NoError(t, err) {
			return
		}
		defer s.Close()
		_, err = s.Step(ctx)
		assert.NoError(t, err)
		path, err := s.Checkpoint(ctx, dir)
		assert.NoError(t, err)
		file := filepath.Join(dir, checkpoint.FileName(1))
		if g.Rank() == 0 {
			assert.Equal(t, file, path)
		} else {
			assert.Empty(t, path)
			assert.NoError(t, os.MkdirAll(empty, 0o700))
		}
		_, err = s.Step(ctx)
		assert.NoError(t, err)
		err = s.Restore(ctx, filepath.Join(empty, "none"))
		if g.Rank() == 0 {
			assert.ErrorIs(t, err, os.ErrNotExist)
		} else {
			assert.ErrorContains(t, err, "worker 0, device 0 could not read it")
		}
		assert.Equal(t, 2, s.Steps())
		if g.Rank() > 0 {
			file = "read by rank 0 alone"
		}
		assert.NoError(t, s.Restore(ctx, file))
		assert.Equal(t, 1, s.Steps())
		assert.NoError(t, g.Barrier(ctx))
	})
}
