package job

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/job/tuned"
)

// A disk simulates directories that are full for some attempts, or for good.
type disk struct {
	full  map[string]int // by directory: attempts that still fail; -1: all
	tried []string
}

func (d *disk) write(dir string) error {
	d.tried = append(d.tried, dir)
	if d.full[dir] == 0 {
		return nil
	}
	d.full[dir]--
	return &fs.PathError{Op: "write", Path: dir, Err: syscall.ENOSPC}
}

func TestFinalWriter(t *testing.T) {
	for _, c := range []struct {
		name, fallback string
		full           map[string]int
		dir            string // where the file is in the end; "": nowhere
		after          time.Duration
		tries, retries int // retries: events for the user
	}{
		{"at once", "", nil, "out", 0, 1, 0},
		{"space is freed", "", map[string]int{"out": 3}, "out", 7 * time.Second, 4, 1},
		{"at the last moment", "spare", map[string]int{"out": 10}, "out", retryTime, 11, 1},
		{"no space is freed", "", map[string]int{"out": -1}, "", retryTime, 11, 1},
		{"to the fallback", "spare", map[string]int{"out": -1}, "spare", retryTime, 12, 1},
		{"the fallback is full", "spare", map[string]int{"out": -1, "spare": -1}, "", retryTime, 12, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events, d, begin := new(heard), &disk{full: c.full}, time.Now()
				w := &finalWriter{dir: "out", fallback: c.fallback, events: events}
				dir, ok := w.write(t.Context(), lastCheckpoint, "step-00000040.safetensors", 40, d.write)
				require.Equal(t, c.dir, dir)
				require.Equal(t, c.dir != "", ok)
				require.Equal(t, c.after, time.Since(begin))
				require.Len(t, d.tried, c.tries)
				if c.retries > 0 {
					require.Equal(t, &event.SaveRetry{Path: filepath.Join("out", "step-00000040.safetensors"), Step: 40,
						Error: "write out: no space left on device", Full: true, Until: begin.Add(retryTime)}, events.all[0])
				}
				if c.dir != "" {
					require.NoError(t, w.err())
					require.Len(t, events.all, c.retries)
					return
				}
				require.ErrorIs(t, w.err(), syscall.ENOSPC)
				require.True(t, events.all[1].(*event.CheckpointFailed).Last)

				// All files share one minute.
				_, ok = w.write(t.Context(), trainedWeights, weightsFile, 40, d.write)
				require.False(t, ok)
				require.Equal(t, c.after, time.Since(begin))
				require.ErrorContains(t, w.err(), "lost the last checkpoint and the trained weights: write out: no space left on device")
			})
		})
	}
}

// A second signal, or the end of the launcher, ends the retries. The fallback still gets its
// attempt.
func TestRetriesAreGivenUp(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			quit, begin := make(chan struct{}), time.Now()
			d := &disk{full: map[string]int{"out": -1}}
			w := &finalWriter{dir: "out", fallback: "spare", quit: quit, events: new(heard)}
			time.AfterFunc(10*time.Second, func() {
				if cancelled {
					cancel()
				} else {
					close(quit)
				}
			})
			dir, _ := w.write(ctx, trainedWeights, weightsFile, 40, d.write)
			require.Equal(t, "spare", dir)
			require.Equal(t, 10*time.Second, time.Since(begin))
			cancel()
		})
	}
}

// If the content is wrong, neither time nor another directory helps.
func TestContentErrorsAreNotRetried(t *testing.T) {
	tries := 0
	w := &finalWriter{dir: "out", fallback: "spare", events: new(heard)}
	_, ok := w.write(t.Context(), trainedWeights, weightsFile, 40, func(string) error {
		tries++
		return errors.New("not finite")
	})
	require.False(t, ok)
	require.Equal(t, 1, tries)
	require.EqualError(t, w.err(), "lost the trained weights: not finite")
}

// lostTraining returns a run of two workers whose output directory is a file.
func lostTraining(t *testing.T, fallback string) (*Training, catalog.Rows) {
	out := filepath.Join(t.TempDir(), "out")
	require.NoError(t, os.WriteFile(out, nil, 0o666))
	f := NewSpec(catalog.New(), filepath.FromSlash("../../examples/mnist.cfg"))
	f.Workers, f.Steps, f.Batch = 2, 3, 4
	f.Saving = Saving{Dir: out, Fallback: fallback}
	f.Place.Transport, f.Device.Device, f.Order.Table = crew.TransportInProcess, "cpu", tuned.Off
	s, err := f.Settle()
	require.NoError(t, err)
	part := &data.Images{Rows: 40, Height: 28, Width: 28, Classes: 10, Pixels: make([]byte, 40*784), Labels: make([]byte, 40)}
	return s, rowsOf(t, s, &data.Set{Train: part, Test: part})
}

// A job that loses its weights fails, with one error that names everything lost. With a
// fallback it succeeds.
func TestLostWeights(t *testing.T) {
	for _, fallback := range []string{"", t.TempDir()} {
		s, rows := lostTraining(t, fallback)
		out := s.Spec.Saving.Dir
		synctest.Test(t, func(t *testing.T) {
			begin, told := time.Now(), new(heard)
			err := s.trainInProcess(t.Context(), rows, Options{Display: told, Stderr: io.Discard})
			require.Equal(t, retryTime, time.Since(begin), "%v", err)
			require.Equal(t, 1, told.count("save_retry"))
			if fallback != "" {
				require.NoError(t, err)
				require.Contains(t, told.all, &event.Weights{Path: filepath.Join(fallback, weightsFile), Step: 3, InsteadOf: filepath.Join(out, weightsFile)})
				require.Contains(t, told.all, &event.Weights{Path: filepath.Join(fallback, bestFile), Step: 3, Best: true, InsteadOf: filepath.Join(out, bestFile)})
				step, in := Newest(out, fallback)
				require.Equal(t, 3, step)
				require.Equal(t, fallback, in)
				return
			}
			var end *crew.EndError
			require.ErrorAs(t, err, &end)
			require.Nil(t, end.Signal)
			require.ErrorContains(t, err, "lost the last checkpoint, the trained weights and the best weights: ")
			require.ErrorContains(t, err, "not a directory")
		})
	}
}

// A signal does not shorten the minute of retries.
func TestStopWhileRetrying(t *testing.T) {
	s, rows := lostTraining(t, "")
	synctest.Test(t, func(t *testing.T) {
		begin, signals := time.Now(), make(chan os.Signal, 1)
		time.AfterFunc(time.Second, func() { signals <- os.Interrupt })
		err := s.trainInProcess(t.Context(), rows, Options{Display: new(heard), Signals: signals, Stderr: io.Discard})
		require.Equal(t, retryTime, time.Since(begin))
		var end *crew.EndError
		require.ErrorAs(t, err, &end)
		require.Equal(t, os.Interrupt, end.Signal)
		require.ErrorContains(t, err, "lost the last checkpoint, the trained weights and the best weights")
	})
}
