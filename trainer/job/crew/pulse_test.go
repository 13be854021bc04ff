package crew

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringtrain/ringtrain/trainer/job/event"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// lasts is how long a worker that was asked to stop lives on, at most for an
// hour, if its launcher hears its pulse alone.
func lasts(p *Pulse) time.Duration {
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
	step := func(p *Pulse, took time.Duration) {
		<-time.After(took)
		p.Stepped(trainer.StepEvent{})
	}
	for _, c := range []struct {
		name string
		do   func(p *Pulse) // before the signal
		want time.Duration
	}{
		{"does nothing", func(*Pulse) {}, stopTime},
		{"hangs in a short step", func(p *Pulse) { p.Begin(false); step(p, 10*time.Millisecond) }, stopTime},
		{"hangs in a long step", func(p *Pulse) { p.Begin(false); step(p, 3*time.Minute); step(p, time.Minute) }, 9 * time.Minute},
		{"hangs in the first step", func(p *Pulse) { p.Begin(false) }, unknownTime},
		{"hangs on a GPU", func(p *Pulse) { p.Begin(true); step(p, time.Second) }, unknownTime},
		{"makes more steps", func(p *Pulse) {
			p.Begin(false)
			step(p, 25*time.Second)
			every(25*time.Second, 10, func() { p.Stepped(trainer.StepEvent{}) })
		}, 250*time.Second + 75*time.Second},
		{"writes for ten minutes", func(p *Pulse) {
			p.Begin(false)
			step(p, time.Minute)
			p.Save()
			every(15*time.Second, 40, func() { p.Wrote(1) })
		}, 10*time.Minute + stopTime},
		{"hangs in a write", func(p *Pulse) { p.Begin(false); step(p, time.Minute); p.Save() }, stopTime},
		{"tries again", func(p *Pulse) { p.Begin(false); p.Save(); p.Retrying(time.Now().Add(time.Minute)) }, time.Minute + stopTime},
		{"computes after it has written", func(p *Pulse) { p.Begin(false); step(p, 2*time.Minute); p.Save()() }, 6 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := NewPulse()
				c.do(p)
				got := lasts(p)
				require.GreaterOrEqual(t, got, c.want-beatEvery)
				require.LessOrEqual(t, got, c.want+3*beatEvery)
			})
		})
	}
}

// nowhere is a Display that shows nothing.
type nowhere struct{}

func (nowhere) Emit(event.Event)   {}
func (nowhere) Log(string, []byte) {}
func (nowhere) Notice(string)      {}

// The launcher ends the workers when one of them is silent for stopTime, and not
// before, whatever the others say.
func TestLauncherWaitsForProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		l := &launcher{vigil: vigil{"worker 0": begin, "worker 1": begin}, running: map[string]*launch.Process{}, show: nowhere{}}
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
		require.ErrorIs(t, l.vigil.stuck(time.Now()), ErrTooSlow)
		require.ErrorContains(t, l.vigil.stuck(time.Now()), "worker 1: no progress for 20s after the signal")
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
				defer f.ranks.add(3, &Pulse{}, nil)()
				<-free
			})
			synctest.Wait() // until the rank is there
			f.ask()
			want := stopTime + forceTime
			if twice {
				time.AfterFunc(5*time.Second, func() { f.force(ErrTwice) })
				want = 5*time.Second + forceTime
			}
			require.False(t, f.wait(ctx, all))
			require.Equal(t, want, time.Since(begin))
			if !twice {
				require.EqualError(t, tooSlow(ctx), "rank 3: "+ErrTooSlow.Error())
			}
			close(free)
		})
	}
}
