package shm

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/calibration"
)

// A search ends with its context, even if another rank never begins one.
func TestSearchEndsWithItsContext(t *testing.T) {
	p := newHost(t, 2)[0]
	ctx, cancel := context.WithCancel(context.Background())
	go cancel()
	_, err := p.choose(ctx, &Options{}, searchAfter)
	require.ErrorIs(t, err, context.Canceled)
}

// A rank that took new memory in a trial would now and then wait for a page, and the others would
// time that.
func TestTrialCallsTakeNoMemory(t *testing.T) {
	m := meter{t: newHost(t, 2)[0].Transport}
	var kept *collective.Operation
	require.Zero(t, testing.AllocsPerRun(10, func() {
		kept = m.operation(collective.KindBarrier, collective.Vector{}, collective.Vector{})
	}))
	require.NotNil(t, kept)
}

// Nobody searches where the trial calls would not be those of the job, or where they
// would only show how the kernel schedules.
func TestSearches(t *testing.T) {
	for _, c := range []struct {
		policy   calibration.Policy
		searches bool
		want     search
	}{
		{calibration.Policy{}, true, noSearch},
		{calibration.Policy{Mode: calibration.Auto}, true, searchAfter},
		{calibration.Policy{Mode: calibration.Auto}, false, noSearch},
		{calibration.Policy{Mode: calibration.Refine}, true, fullSearch},
		{calibration.Policy{Mode: calibration.Refine}, false, noSearch},
	} {
		choices, from, s := first(&c.policy, 2, c.searches)
		require.Equal(t, calibration.Default(2), choices)
		require.Equal(t, calibration.FromDefault, from)
		require.Equal(t, c.want, s, "%+v", c)
	}
}

// A job measures what earlier ones had no time for.
func TestSearchGoesOn(t *testing.T) {
	p := calibration.Policy{Mode: calibration.Auto, Store: &calibration.Store{Dir: t.TempDir()}}
	kept := calibration.Kept{Choices: calibration.Default(2), Done: 3}
	kept.Choices.Chunk = 64 << 10
	for _, c := range []struct {
		done     int
		searches bool
		want     search
	}{{3, true, searchAfter + 3}, {3, false, noSearch}, {calibration.Experiments, true, noSearch}} {
		kept.Done = c.done
		require.NoError(t, p.Store.Save(2, kept))
		choices, from, s := first(&p, 2, c.searches)
		require.Equal(t, kept.Choices, choices)
		require.Equal(t, calibration.FromStore, from)
		require.Equal(t, c.want, s)
	}

	host := newHost(t, 2)
	var ranks sync.WaitGroup
	for _, r := range host {
		ranks.Go(func() {
			report, err := r.search(searchAfter + search(calibration.Experiments))
			assert.NoError(t, err)
			assert.Equal(t, calibration.Experiments, report.Done)
			assert.Zero(t, report.Took, "nothing was left to measure")
		})
	}
	ranks.Wait()
}

// Programs that keep every core busy disturb trials.
func TestBusyCoresDisturbTrials(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2*runtime.NumCPU() + 2))
	var load sync.WaitGroup
	done := make(chan struct{})
	for range 2 * runtime.NumCPU() {
		load.Go(func() {
			runtime.LockOSThread()
			for never := uint64(0); ; spin(&never, 1, 1000) {
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	defer load.Wait()
	defer close(done)

	disturbed := make([]bool, 2)
	var ranks sync.WaitGroup
	for i, p := range newHost(t, 2) {
		p.named = false // so that ranks on one core do not count
		ranks.Go(func() {
			m := &meter{t: p.Transport, began: time.Now()}
			defer m.free()
			for n := 0; n < 2000 && !disturbed[i]; n++ {
				r, err := m.Measure(calibration.Trial{Bytes: 256 << 10, Choices: calibration.Default(2)})
				if !assert.NoError(t, err) {
					return
				}
				disturbed[i] = r.Disturbed
			}
		})
	}
	ranks.Wait()
	require.Equal(t, []bool{true, true}, disturbed)
}

// Ranks on one core disturb each other. They tell by the cores that they share.
func TestRanksOnOneCore(t *testing.T) {
	m := &meter{t: newHost(t, 3)[0].Transport}
	for _, c := range []struct {
		cores [3]int64
		want  bool
	}{
		{[3]int64{1, 2, 3}, false},
		{[3]int64{1, 2, 1}, true},
		{[3]int64{0, 0, 0}, false}, // unknown
	} {
		m.all = m.all[:0]
		for _, on := range c.cores {
			m.all = append(m.all, 0, 0, 0, on)
		}
		require.Equal(t, c.want, m.separate(), "%v", c.cores)
	}
}

// A region whose choices are impossible is refused.
func TestCorruptChoices(t *testing.T) {
	p := newHost(t, 2)[0]
	c := calibration.Default(2)
	p.mem.choose(c, calibration.FromStore, searchAfter+3)
	got, from, s, err := p.mem.chosen()
	require.NoError(t, err)
	require.Equal(t, c, got)
	require.Equal(t, calibration.FromStore, from)
	require.Equal(t, searchAfter+3, s)
	c.Chunk = 1 << 30
	p.mem.choose(c, calibration.FromStore, searchAfter+3)
	require.ErrorContains(t, p.calibrate(t.Context(), &Options{}), "corrupt: chunk must be from 16K to 256K, not 1073741824")
}
