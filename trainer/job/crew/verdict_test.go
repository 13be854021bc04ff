package crew

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// heardBy returns a launcher without processes that has received these events, by worker.
func heardBy(show Display, said map[int][]event.Event) *launcher {
	l := &launcher{show: show, joining: newJoining(), running: map[string]*launch.Process{}, failures: map[string]event.Failed{}}
	l.Place = cluster.Config{Cluster: "c", Node: "vm"}
	l.Crew.Workers = 2
	for local, events := range said {
		for _, e := range events {
			l.onLine(local, event.Encode(e))
		}
	}
	return l
}

// The error has the root cause in the words of the worker that failed first, if it
// reported any.
func TestVerdict(t *testing.T) {
	crash := launch.Exit{Name: "worker 1", Pid: 7, Code: -1, Signal: syscall.SIGKILL}
	failed := launch.Exit{Name: "worker 1", Code: 1}
	step, begun := &event.Step{Step: 1}, event.Event(&event.View{})
	starting := errors.New("fork: out of memory")
	for _, c := range []struct {
		name    string
		said    map[int][]event.Event
		outcome launch.Outcome
		start   error
		want    *EndError // nil: no error
		text    string
	}{
		{name: "well", said: map[int][]event.Event{0: {begun, step}}},
		{name: "one was asked to stop", said: map[int][]event.Event{0: {begun, &event.Stopped{Steps: 3}}}, want: &EndError{Begun: true}, text: ErrElsewhere.Error()},
		{name: "killed", said: map[int][]event.Event{0: {begun, &event.Failed{Name: "vm/0", Code: 1, Error: "lost rank 1"}}}, outcome: launch.Outcome{Root: &crash},
			want: &EndError{Begun: true}, text: "worker 1 (pid 7) was killed by signal 9 (killed); it was vm/1"},
		{name: "said why", said: map[int][]event.Event{0: {begun}, 1: {&event.Failed{Name: "vm/1", Code: 1, Error: "disk full"}}}, outcome: launch.Outcome{Root: &failed},
			want: &EndError{Begun: true}, text: "worker 1 (vm/1): disk full"},
		{name: "a mistake that another met later", said: map[int][]event.Event{0: {begun, &event.Failed{Name: "vm/0", Code: 2, Error: "--seed differs"}}, 1: {&event.Failed{Name: "vm/1", Code: 1, Error: "lost rank 0"}}},
			outcome: launch.Outcome{Root: &failed, Exits: []launch.Exit{{Name: "worker 0", Code: 2}, failed}}, want: &EndError{Begun: true, Usage: true}, text: "worker 0 (vm/0): --seed differs"},
		{name: "before the start", said: map[int][]event.Event{1: {&event.Failed{Name: "vm/1", Code: 2, Error: "--batch is too large"}}}, outcome: launch.Outcome{Root: &failed},
			want: &EndError{Usage: true}, text: "worker 1 (vm/1): --batch is too large"},
		{name: "stopped from outside", outcome: launch.Outcome{Cause: context.Canceled}, want: &EndError{Begun: true}, text: "the job was stopped: context canceled"},
	} {
		err := heardBy(nowhere{}, c.said).verdict(c.outcome, c.start, nil)
		if c.want == nil {
			require.NoError(t, err, c.name)
			continue
		}
		var end *EndError
		require.ErrorAs(t, err, &end, c.name)
		require.Equal(t, []bool{c.want.Usage, c.want.Begun}, []bool{end.Usage, end.Begun}, c.name)
		require.ErrorContains(t, err, c.text, c.name)
	}
	require.ErrorIs(t, heardBy(nowhere{}, nil).verdict(launch.Outcome{Root: &crash}, starting, nil), starting, "workers that could not be started")
}

// A job that was asked to stop has not failed unless a worker reported a failure.
func TestVerdictAfterASignal(t *testing.T) {
	exits := []launch.Exit{{Name: "worker 0", Code: 1}, {Name: "worker 1", Code: 1}}
	lost := event.Failed{Name: "vm/1", Code: 1, Error: "lost the last checkpoint"}
	early := event.Failed{Name: "vm/0", Code: 1, Error: ErrEarly.Error(), Early: true}
	for _, c := range []struct {
		name   string
		said   map[int][]event.Event
		cause  error
		forced bool
		text   string
	}{
		{name: "ended in time", text: `stopped by the signal "terminated"`},
		{name: "lost something", said: map[int][]event.Event{0: {&early}, 1: {&lost}}, text: "worker 1 (vm/1): lost the last checkpoint"},
		{name: "the first of two", said: map[int][]event.Event{0: {&lost}, 1: {&lost}}, text: "worker 0 (vm/1): lost the last checkpoint"},
		{name: "twice", cause: ErrTwice, forced: true, text: ErrTwice.Error()},
		{name: "stuck", cause: ErrTooSlow, text: ErrTooSlow.Error()},
		{name: "stuck and said why", said: map[int][]event.Event{1: {&lost}}, cause: ErrTooSlow, text: "lost the last checkpoint"},
	} {
		err := heardBy(nowhere{}, c.said).verdict(launch.Outcome{Exits: exits, Cause: c.cause}, nil, syscall.SIGTERM)
		var end *EndError
		require.ErrorAs(t, err, &end, c.name)
		require.Equal(t, syscall.SIGTERM, end.Signal, c.name)
		require.Equal(t, c.forced, end.Forced, c.name)
		require.ErrorContains(t, err, c.text, c.name)
	}
}

// A job of goroutines fails with the error of the rank that failed, not with those that
// other ranks report about it. A lack of progress takes precedence.
func TestVerdictOfGoroutines(t *testing.T) {
	own, told := errors.New("disk full"), error(&collective.ReportedError{})
	for _, c := range []struct {
		errs []error
		slow error
		sig  os.Signal
		want error // nil: an EndError without one, or no error
		end  bool
	}{
		{errs: []error{nil, nil}},
		{errs: []error{told, own, told}, want: own, end: true},
		{errs: []error{own}, slow: ErrTooSlow, want: ErrTooSlow, end: true},
		{errs: []error{trainer.ErrStopped, trainer.ErrStopped}, sig: os.Interrupt, end: true},
		{errs: []error{trainer.ErrStopped, own}, sig: os.Interrupt, want: own, end: true},
	} {
		err := verdictOf(c.errs, c.slow, c.sig)
		var end *EndError
		require.Equal(t, c.end, errors.As(err, &end), "%v", err)
		if c.end {
			require.Equal(t, c.sig, end.Signal)
			require.Equal(t, c.want, end.Err)
		} else {
			require.NoError(t, err)
		}
	}
}

// A screenOf records what a launcher shows.
type screenOf struct {
	events []event.Event
	logs   []string
}

func (s *screenOf) Emit(e event.Event)           { s.events = append(s.events, e) }
func (s *screenOf) Log(name string, line []byte) { s.logs = append(s.logs, name+": "+string(line)) }
func (s *screenOf) Notice(text string)           { s.logs = append(s.logs, "notice: "+text) }

// Events that only the launcher needs are not shown. Lines that are no events are.
func TestOnLine(t *testing.T) {
	shown := &screenOf{}
	l := heardBy(shown, nil)
	l.Announce = true
	l.onLine(1, event.Encode(&event.Ready{Addr: "127.0.0.1:9"}))
	require.Empty(t, l.ready, "startWorkers waits only for the first worker")
	for range 2 {
		l.onLine(0, event.Encode(&event.Ready{Addr: "127.0.0.1:7"}))
	}
	require.Len(t, l.ready, 1)
	l.onLine(1, []byte("panic: x"))
	l.onLine(1, []byte(`{"event":"of a later version"}`))
	l.onLine(1, event.Encode(&event.Progress{}))
	require.False(t, l.begun)
	l.onLine(0, event.Encode(&event.View{Job: "1"}))
	l.onLine(1, event.Encode(&event.Failed{Error: "x"}))
	require.True(t, l.begun)
	require.Equal(t, []event.Event{&event.View{Job: "1", Cluster: "c", Gossip: "127.0.0.1:7"}}, shown.events)
	require.Equal(t, []string{": cluster c on 127.0.0.1:7, 2 workers", "worker 1: panic: x", `worker 1: {"event":"of a later version"}`}, shown.logs)

	l.Place.Nodes = 3
	require.Equal(t, "cluster c on a:1, 2 workers here of 3 machines; on the other machines: --join a:1", l.announcement("a:1"))
	l.Place.Join = []string{"b:1"}
	require.Equal(t, "cluster c on a:1, 2 workers here of 3 machines", l.announcement("a:1"))
}

// The error names a worker that has been silent for stallTime, the first by name.
func TestStuck(t *testing.T) {
	begin := time.Unix(0, 0)
	v := watchdog{"worker 2": begin, "worker 1": begin, "worker 0": begin.Add(time.Second)}
	require.NoError(t, v.stuck(begin.Add(stallTime-1)))
	require.EqualError(t, v.stuck(begin.Add(stallTime)), "worker 1: "+ErrTooSlow.Error())
	require.ErrorContains(t, v.stuck(begin.Add(time.Hour)), "worker 0: ")
	require.NoError(t, watchdog(nil).stuck(begin))
}

// The first signal asks, later ones force, and End returns the last.
func TestWatchSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked, forced atomic.Int32
		signals := make(chan os.Signal)
		w := WatchSignals(signals, func() { asked.Add(1) }, func() { forced.Add(1) })
		synctest.Wait()
		require.Zero(t, asked.Load())
		signals <- os.Interrupt
		synctest.Wait()
		require.Equal(t, []int32{1, 0}, []int32{asked.Load(), forced.Load()})
		signals <- syscall.SIGTERM
		signals <- syscall.SIGHUP
		synctest.Wait()
		require.Equal(t, []int32{1, 2}, []int32{asked.Load(), forced.Load()})
		require.Equal(t, syscall.SIGHUP, w.End())
	})
	require.Nil(t, WatchSignals(nil, nil, nil).End())
}

// A second signal during a hang ends the goroutines.
func TestInProcessIsForced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals, begin := make(chan os.Signal, 2), time.Now()
		time.AfterFunc(time.Second, func() { signals <- os.Interrupt })
		time.AfterFunc(3*time.Second, func() { signals <- syscall.SIGTERM })
		var stopped atomic.Int32
		err := InProcess(t.Context(), 3, signals, func(ctx context.Context, s *Seat) error {
			<-s.Stop
			stopped.Add(1)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		require.Equal(t, 3*time.Second, time.Since(begin))
		require.EqualValues(t, 3, stopped.Load())
		var end *EndError
		require.ErrorAs(t, err, &end)
		require.ErrorIs(t, err, ErrTwice)
		require.Equal(t, syscall.SIGTERM, end.Signal)
	})
	require.NoError(t, InProcess(t.Context(), 4, nil, func(context.Context, *Seat) error { return nil }))
}

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("x"), "x\n"},
		{&EndError{Err: errors.New("x"), Signal: os.Interrupt}, "x\n"},
		{&EndError{Signal: os.Interrupt}, ""},
		{&EndError{}, ""},
	} {
		var said strings.Builder
		require.Equal(t, c.err, Explain(&said, c.err))
		require.Equal(t, c.want, said.String())
	}
	require.EqualError(t, &EndError{Signal: os.Interrupt}, `stopped by the signal "interrupt"`)
	require.EqualError(t, &EndError{}, "the worker has reported its error to its launcher")
}
