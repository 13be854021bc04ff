package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// lasts is how long a worker that was asked to stop lives on, at most for an
// hour, if its launcher hears its pulse alone.
func lasts(p *pulse) time.Duration {
	seen, begin := vigil{"worker 0": time.Now()}, time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	stop := make(chan struct{})
	close(stop)
	everyBeat(ctx, stop, func() {
		if getsOn(p, nil) {
			seen["worker 0"] = time.Now()
		}
		if seen.stuck(time.Now()) != nil {
			cancel()
		}
	})
	return time.Since(begin)
}

// A worker that was asked to stop has as long as it makes progress, and then
// stopTime more.
func TestPulse(t *testing.T) {
	every := func(d time.Duration, most int, f func()) {
		go func() {
			for range most {
				<-time.After(d)
				f()
			}
		}()
	}
	step := func(p *pulse, took time.Duration) {
		<-time.After(took)
		p.Stepped(trainer.StepEvent{})
	}
	for _, c := range []struct {
		name string
		do   func(p *pulse) // before the signal
		want time.Duration
	}{
		{"does nothing", func(*pulse) {}, stopTime},
		{"hangs in a short step", func(p *pulse) { p.begin(false); step(p, 10*time.Millisecond) }, stopTime},
		{"hangs in a long step", func(p *pulse) { p.begin(false); step(p, 3*time.Minute); step(p, time.Minute) }, 9 * time.Minute},
		{"hangs in the first step", func(p *pulse) { p.begin(false) }, unknownTime},
		{"hangs on a GPU", func(p *pulse) { p.begin(true); step(p, time.Second) }, unknownTime},
		{"makes more steps", func(p *pulse) {
			p.begin(false)
			step(p, 25*time.Second)
			every(25*time.Second, 10, func() { p.Stepped(trainer.StepEvent{}) })
		}, 250*time.Second + 75*time.Second},
		{"writes for ten minutes", func(p *pulse) {
			p.begin(false)
			step(p, time.Minute)
			p.save()
			every(15*time.Second, 40, func() { p.wrote(1) })
		}, 10*time.Minute + stopTime},
		{"hangs in a write", func(p *pulse) { p.begin(false); step(p, time.Minute); p.save() }, stopTime},
		{"tries again", func(p *pulse) { p.begin(false); p.save(); p.retrying(time.Now().Add(retryTime)) }, retryTime + stopTime},
		{"computes after it has written", func(p *pulse) { p.begin(false); step(p, 2*time.Minute); p.save()() }, 6 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &pulse{last: time.Now()}
				c.do(p)
				got := lasts(p)
				require.GreaterOrEqual(t, got, c.want-beatEvery)
				require.LessOrEqual(t, got, c.want+3*beatEvery)
			})
		})
	}
}

// The launcher ends the workers when one of them is silent for stopTime, and not
// before, whatever the others say.
func TestLauncherWaitsForProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		l := &launcher{vigil: vigil{"worker 0": begin, "worker 1": begin}, running: map[string]*launch.Process{}, show: &screen{out: io.Discard, err: io.Discard}}
		for range 30 {
			<-time.After(15 * time.Second)
			l.hear(0, []byte(`{"event":"progress"}`))
			l.hear(1, []byte(`{"event":"progress"}`))
			require.NoError(t, l.vigil.stuck(time.Now()))
		}
		<-time.After(10 * time.Second)
		l.hear(1, []byte("no event"))
		l.hear(0, []byte(`{"event":"step"}`))
		require.NoError(t, l.vigil.stuck(time.Now()))
		<-time.After(10 * time.Second)
		require.ErrorIs(t, l.vigil.stuck(time.Now()), errTooSlow)
		require.ErrorContains(t, l.vigil.stuck(time.Now()), "worker 1: no progress for 20s after the signal")
	})
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
		var coded *codedError
		require.ErrorAs(t, err, &coded)
		require.Equal(t, exitInterrupted, coded.code)
		require.ErrorContains(t, err, "lost the last checkpoint and the trained weights")
	})
}

// Goroutines that make no progress are not waited for, nor are those that do
// not end after the second signal.
func TestForcible(t *testing.T) {
	for _, twice := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			begin, free := time.Now(), make(chan struct{})
			ctx, f := newForcible(t.Context())
			all := new(sync.WaitGroup)
			all.Go(func() {
				defer f.ranks.add(3, &pulse{}, nil)()
				<-free
			})
			synctest.Wait() // until the rank is there
			f.ask()
			want := stopTime + forceTime
			if twice {
				time.AfterFunc(5*time.Second, func() { f.force(errTwice) })
				want = 5*time.Second + forceTime
			}
			require.False(t, f.wait(ctx, all))
			require.Equal(t, want, time.Since(begin))
			if !twice {
				require.EqualError(t, tooSlow(ctx), "rank 3: "+errTooSlow.Error())
			}
			close(free)
		})
	}
}
