package bench

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/secret"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

// Of ranks in one process, the error of the rank that failed is returned, not that of a
// rank that heard of it.
func TestInProcessReturnsTheCause(t *testing.T) {
	cause := errors.New("the disk is full")
	for culprit := range 3 {
		err := inProcess(t.Context(), 3, collective.RingOrder, job.Options{}.WithDefaults(), func(ctx context.Context, g *collective.Group) error {
			if g.Rank() == culprit {
				g.Abort(cause)
				return cause
			}
			return g.Barrier(ctx)
		})
		require.Equal(t, cause, err, "rank %d failed", culprit)
	}
	require.NoError(t, inProcess(t.Context(), 3, collective.RingOrder, job.Options{}.WithDefaults(), func(ctx context.Context, g *collective.Group) error { return g.Barrier(ctx) }))
}

// A signal stops all ranks, and the error says which it was.
func TestInProcessIsStopped(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signals <- os.Interrupt
	var out bytes.Buffer
	o := job.Options{Signals: signals, Stderr: &out}.WithDefaults()
	err := inProcess(t.Context(), 2, collective.RingOrder, o, func(ctx context.Context, g *collective.Group) error {
		<-ctx.Done()
		return g.Barrier(ctx)
	})
	var end *crew.EndError
	require.ErrorAs(t, err, &end)
	require.Equal(t, os.Interrupt, end.Signal)
	require.Equal(t, "stopping\n", out.String())
}

// Only a call that was cancelled counts as such.
func TestCancelled(t *testing.T) {
	require.True(t, cancelled(&collective.RankError{Phase: "cancelled"}))
	require.False(t, cancelled(&collective.RankError{Phase: "recv"}))
	require.False(t, cancelled(context.Canceled))
	require.False(t, cancelled(nil))
}

// Each temporary key is another, can be read, and goes with its directory.
func TestTemporaryKey(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var keys []string
	for range 2 {
		path, remove, err := temporaryKey()
		require.NoError(t, err)
		key, err := os.ReadFile(path)
		require.NoError(t, err)
		_, err = secret.ReadFile(path)
		require.NoError(t, err)
		keys = append(keys, string(key))
		require.NoError(t, remove())
		require.NoFileExists(t, path)
	}
	require.NotEqual(t, keys[0], keys[1])
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)
}
