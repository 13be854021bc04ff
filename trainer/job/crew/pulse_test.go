package crew

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringtrain/ringtrain/trainer/job/event"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// lasts returns how long the watchdog lets a worker live after the signal, at most an
// hour, if only its pulse shows progress.
func lasts(p *Pulse) time.Duration {
	seen, begin := watchdog{"worker 0": time.Now()}, time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	stop := make(chan struct{})
	close(stop)
	pollProgress(ctx, stop, func() {
		if makesProgress(p, nil) {
			seen["worker 0"] = time.Now()
		}
		if seen.stuck(time.Now()) != nil {
			cancel()
		}
	})
	return time.Since(begin)
}

// A worker that was asked to stop may run while it makes progress, and stallTime longer.
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
		{"does nothing", func(*Pulse) {}, stallTime},
		{"hangs in a short step", func(p *Pulse) { p.Begin(false); step(p, 10*time.Millisecond) }, stallTime},
		{"hangs in a long step", func(p *Pulse) { p.Begin(false); step(p, 3*time.Minute); step(p, time.Minute) }, 9 * time.Minute},
		{"hangs in the first step", func(p *Pulse) { p.Begin(false) }, unknownStepTime},
		{"hangs on a GPU", func(p *Pulse) { p.Begin(true); step(p, time.Second) }, unknownStepTime},
		{"takes more steps", func(p *Pulse) {
			p.Begin(false)
			step(p, 25*time.Second)
			every(25*time.Second, 10, func() { p.Stepped(trainer.StepEvent{}) })
		}, 250*time.Second + 75*time.Second},
		{"writes for ten minutes", func(p *Pulse) {
			p.Begin(false)
			step(p, time.Minute)
			p.Save()
			every(15*time.Second, 40, func() { p.Wrote(1) })
		}, 10*time.Minute + stallTime},
		{"hangs in a write", func(p *Pulse) { p.Begin(false); step(p, time.Minute); p.Save() }, stallTime},
		{"retries a write", func(p *Pulse) { p.Begin(false); p.Save(); p.Retrying(time.Now().Add(time.Minute)) }, time.Minute + stallTime},
		{"computes after a write", func(p *Pulse) { p.Begin(false); step(p, 2*time.Minute); p.Save()() }, 6 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := NewPulse()
				c.do(p)
				got := lasts(p)
				require.GreaterOrEqual(t, got, c.want-reportEvery)
				require.LessOrEqual(t, got, c.want+3*reportEvery)
			})
		})
	}
}

// Waiting for messages is no progress of a worker that trains and always does. It is that of a
// worker that has trained, or of a server, because both wait for others.
func TestPulseOfMessages(t *testing.T) {
	groups := collectivetest.Local(t, 2)
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		m, err := g.Messages(ctx)
		require.NoError(t, err)
		if g.Rank() == 0 {
			_, err := m.Next(ctx)
			require.NoError(t, err)
			require.NoError(t, m.End(ctx))
			return
		}
		for waits := false; !waits && ctx.Err() == nil; runtime.Gosched() {
			f := groups[0].Flight()
			c := f.InProgress()
			waits = c != nil && c.Call.Kind == collective.KindMessage
		}
		long := time.Now().Add(-2 * unknownStepTime) // ago
		worker, server := &Pulse{training: true, unseen: true, last: long}, &Pulse{last: long}
		require.False(t, makesProgress(worker, groups[0]))
		worker.last = time.Now()
		require.True(t, makesProgress(worker, groups[0]), "it may be in a step")
		worker.last = long
		worker.Trained()
		require.True(t, makesProgress(worker, groups[0]))
		require.True(t, makesProgress(server, groups[0]))
		require.NoError(t, m.Send(ctx, 0, 0, collective.Of([]byte{1})))
		require.NoError(t, m.End(ctx))
	})
}

// nowhere is a Display that shows nothing.
type nowhere struct{}

func (nowhere) Emit(event.Event)   {}
func (nowhere) Log(string, []byte) {}
func (nowhere) Notice(string)      {}

// The launcher ends the workers when one of them has been silent for stallTime, whatever
// the others report, and not earlier.
func TestLauncherWaitsForProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		l := &launcher{watchdog: watchdog{"worker 0": begin, "worker 1": begin}, running: map[string]*launch.Process{}, show: nowhere{}}
		for range 30 {
			<-time.After(15 * time.Second)
			l.onLine(0, []byte(`{"event":"progress"}`))
			l.onLine(1, []byte(`{"event":"progress"}`))
			require.NoError(t, l.watchdog.stuck(time.Now()))
		}
		<-time.After(10 * time.Second)
		l.onLine(1, []byte("no event"))
		l.onLine(0, []byte(`{"event":"step"}`))
		require.NoError(t, l.watchdog.stuck(time.Now()))
		<-time.After(10 * time.Second)
		require.ErrorIs(t, l.watchdog.stuck(time.Now()), ErrTooSlow)
		require.ErrorContains(t, l.watchdog.stuck(time.Now()), "worker 1: no progress for 20s after the stop signal")
	})
}

// InProcess does not wait for goroutines that make no progress, or that ignore the second
// signal.
func TestRankJob(t *testing.T) {
	for _, twice := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			begin, free := time.Now(), make(chan struct{})
			ctx, f := newRankJob(t.Context())
			all := new(sync.WaitGroup)
			all.Go(func() {
				defer f.ranks.add(3, &Pulse{}, nil)()
				<-free
			})
			synctest.Wait() // until the rank is there
			f.ask()
			want := stallTime + forceTime
			if twice {
				time.AfterFunc(5*time.Second, func() { f.force(ErrTwice) })
				want = 5*time.Second + forceTime
			}
			require.False(t, f.wait(ctx, all))
			require.Equal(t, want, time.Since(begin))
			if !twice {
				require.EqualError(t, stallCause(ctx), "rank 3: "+ErrTooSlow.Error())
			}
			close(free)
		})
	}
}
