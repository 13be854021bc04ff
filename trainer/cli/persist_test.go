package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// heard keeps events.
type heard struct{ all []any }

func (h *heard) Emit(e event.Event) { h.all = append(h.all, e) }

// A disk is a writer that is full for a while, or for good, by directory.
type disk struct {
	full  map[string]int // attempts that fail; -1: all
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

func TestPersist(t *testing.T) {
	for _, c := range []struct {
		name, fallback string
		full           map[string]int
		dir            string // where it is in the end; "" for nowhere
		after          time.Duration
		tries, retries int // retries: lines for the user
	}{
		{"at once", "", nil, "out", 0, 1, 0},
		{"somebody frees space", "", map[string]int{"out": 3}, "out", 7 * time.Second, 4, 1},
		{"at the last moment", "spare", map[string]int{"out": 10}, "out", retryTime, 11, 1},
		{"nobody does", "", map[string]int{"out": -1}, "", retryTime, 11, 1},
		{"to the fallback", "spare", map[string]int{"out": -1}, "spare", retryTime, 12, 1},
		{"the fallback is full", "spare", map[string]int{"out": -1, "spare": -1}, "", retryTime, 12, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events, d, begin := new(heard), &disk{full: c.full}, time.Now()
				p := &persister{dir: "out", fallback: c.fallback, events: events}
				dir, ok := p.write(t.Context(), lastCheckpoint, "step-00000040.safetensors", 40, d.write)
				require.Equal(t, c.dir, dir)
				require.Equal(t, c.dir != "", ok)
				require.Equal(t, c.after, time.Since(begin))
				require.Len(t, d.tried, c.tries)
				if c.retries > 0 {
					require.Equal(t, &event.SaveRetry{Path: filepath.Join("out", "step-00000040.safetensors"), Step: 40,
						Error: "write out: no space left on device", Until: begin.Add(retryTime)}, events.all[0])
				}
				if c.dir != "" {
					require.NoError(t, p.err())
					require.Len(t, events.all, c.retries)
					return
				}
				require.ErrorIs(t, p.err(), syscall.ENOSPC)
				require.True(t, events.all[1].(*event.CheckpointFailed).Last)

				// The time is over for all files together.
				_, ok = p.write(t.Context(), trainedWeights, weightsFile, 40, d.write)
				require.False(t, ok)
				require.Equal(t, c.after, time.Since(begin))
				require.ErrorContains(t, p.err(), "lost the last checkpoint and the trained weights: write out: no space left on device")
			})
		})
	}
}

// A second signal, or the end of the launcher, ends the retries: the fallback is
// the last chance then.
func TestPersistIsGivenUp(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			quit, begin := make(chan struct{}), time.Now()
			d := &disk{full: map[string]int{"out": -1}}
			p := &persister{dir: "out", fallback: "spare", quit: quit, events: new(heard)}
			time.AfterFunc(10*time.Second, func() {
				if cancelled {
					cancel()
				} else {
					close(quit)
				}
			})
			dir, _ := p.write(ctx, trainedWeights, weightsFile, 40, d.write)
			require.Equal(t, "spare", dir)
			require.Equal(t, 10*time.Second, time.Since(begin))
			cancel()
		})
	}
}

// What is wrong with the weights themselves is wrong tomorrow, too, and
// elsewhere.
func TestPersistWhatCannotBe(t *testing.T) {
	tries := 0
	p := &persister{dir: "out", fallback: "spare", events: new(heard)}
	_, ok := p.write(t.Context(), trainedWeights, weightsFile, 40, func(string) error {
		tries++
		return errors.New("not finite")
	})
	require.False(t, ok)
	require.Equal(t, 1, tries)
	require.EqualError(t, p.err(), "lost the trained weights: not finite")
}

// lostTraining is a training of two workers that cannot write to --out.
func lostTraining(t *testing.T, fallback string) (*app, *settings, *data.Set) {
	out := filepath.Join(t.TempDir(), "out") // a file: nothing can be written there
	require.NoError(t, os.WriteFile(out, nil, 0o666))
	a := &app{catalog: catalog.New(), stdout: &output{w: io.Discard}, stderr: io.Discard}
	s, err := a.settle(filepath.FromSlash("../../examples/mnist.cfg"), trainFlags{
		workers: 2, steps: 3, batch: 4, data: "digits", out: out, outFallback: fallback,
		placeFlags: placeFlags{crew.Place{Transport: "inproc"}}, deviceFlags: deviceFlags{device: "cpu"}, orderFlags: orderFlags{tuned.Choice{Order: "ring", Table: tuned.Off}},
	})
	require.NoError(t, err)
	part := &data.Images{Rows: 40, Height: 28, Width: 28, Classes: 10, Pixels: make([]byte, 40*784), Labels: make([]byte, 40)}
	return a, s, &data.Set{Train: part, Test: part}
}

// A job whose weights are lost fails, and says what it has lost once; with a
// fallback it does not.
func TestLostWeights(t *testing.T) {
	for _, fallback := range []string{"", t.TempDir()} {
		a, s, set := lostTraining(t, fallback)
		synctest.Test(t, func(t *testing.T) {
			begin, told := time.Now(), new(bytes.Buffer)
			show := &screen{out: io.Discard, err: told}
			err := a.trainInProcess(t.Context(), s, set, show, make(chan os.Signal))
			require.Equal(t, retryTime, time.Since(begin), "%v", err)
			require.Equal(t, 1, strings.Count(told.String(), "trying again until "), told)
			if fallback != "" {
				require.NoError(t, err)
				require.Contains(t, told.String(), "weights saved to "+filepath.Join(fallback, weightsFile)+", because "+filepath.Join(s.flags.out, weightsFile)+" cannot be written")
				step, in := newest(s.flags.out, fallback)
				require.Equal(t, 3, step)
				require.Equal(t, fallback, in)
				return
			}
			require.Equal(t, exitFailed, a.exit(err))
			require.ErrorContains(t, err, "lost the last checkpoint and the trained weights: ")
			require.ErrorContains(t, err, "not a directory")
		})
	}
}

// A job of goroutines that was asked to stop has the minute of its retries.
func TestStopWhileRetrying(t *testing.T) {
	a, s, set := lostTraining(t, "")
	synctest.Test(t, func(t *testing.T) {
		begin, signals := time.Now(), make(chan os.Signal, 1)
		show := &screen{out: io.Discard, err: new(bytes.Buffer)}
		time.AfterFunc(time.Second, func() { signals <- os.Interrupt })
		err := a.trainInProcess(t.Context(), s, set, show, signals)
		require.Equal(t, retryTime, time.Since(begin))
		require.Equal(t, exitInterrupted, a.exit(err))
		require.ErrorContains(t, err, "lost the last checkpoint and the trained weights")
	})
}
