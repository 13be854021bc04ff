package shm_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/calibration"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/shm"
)

// reports joins n ranks, and returns their groups and what each has chosen.
func reports(t *testing.T, n int, policy func(rank int) calibration.Policy) ([]*collective.Group, []calibration.Report) {
	all := make([]calibration.Report, n)
	views, transports, errs := join(t, n, oneHost, func(rank int) shm.Options {
		return shm.Options{Must: true, Calibration: policy(rank), Calibrated: func(r calibration.Report) { all[rank] = r }}
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
	return collectivetest.Groups(t, views, transports, collective.Options{}), all
}

// sums checks sums of vectors on both sides of all limits.
func sums(t *testing.T, groups []*collective.Group, most int) {
	for n := 1; n <= most; n = n*5 + 3 {
		var all sync.WaitGroup
		for _, g := range groups {
			all.Go(func() {
				s := make([]int64, n)
				for i := range s {
					s[i] = int64(g.Rank()*n + i)
				}
				assert.NoError(t, collective.AllReduce(t.Context(), g, s, collective.Sum))
				for i := range s {
					if want := int64(len(groups)*i + n*len(groups)*(len(groups)-1)/2); s[i] != want {
						t.Errorf("rank %d, element %d of %d: %d, not %d", g.Rank(), i, n, s[i], want)
						break
					}
				}
			})
		}
		all.Wait()
	}
}

// gathers checks an AllGather of up to most elements per rank.
func gathers(t *testing.T, groups []*collective.Group, most int) {
	for n := 1; n <= most; n = n*5 + 3 {
		var all sync.WaitGroup
		for _, g := range groups {
			all.Go(func() {
				mine, every := make([]int64, n), make([]int64, n*len(groups))
				for i := range mine {
					mine[i] = int64(g.Rank()*n + i)
				}
				assert.NoError(t, collective.AllGather(t.Context(), g, every, mine))
				for i, got := range every {
					if got != int64(i) {
						t.Errorf("rank %d, element %d of %d: %d, not %d", g.Rank(), i, len(every), got, i)
						break
					}
				}
			})
		}
		all.Wait()
	}
}

// All ranks of a host use the choices of the lowest, and keep them for the next job.
func TestRanksChooseTogether(t *testing.T) {
	store := &calibration.Store{Dir: t.TempDir(), Version: "test"}
	for _, n := range []int{2, 3} {
		auto := func(int) calibration.Policy { return calibration.Policy{Mode: calibration.Auto, Store: store} }
		groups, all := reports(t, n, auto)
		for _, r := range all {
			require.Equal(t, n, r.Ranks)
			require.NoError(t, r.Choices.Check())
			require.Equal(t, all[0].Choices, r.Choices)
			if n > runtime.NumCPU() { // they would measure how the kernel schedules
				require.Equal(t, calibration.Report{Choices: calibration.Default(n), Ranks: n}, r)
				continue
			}
			require.Equal(t, calibration.FromTrials, r.Source)
			require.Positive(t, r.Took)
		}
		kept, ok := store.Load(n)
		require.Equal(t, all[0].Lasting, ok)
		if ok {
			require.Equal(t, calibration.Kept{Choices: all[0].Choices, Done: all[0].Done}, kept)
		}
		sums(t, groups, 1<<18)

		c := calibration.Default(n)
		c.Chunk, c.Polls = 20<<10, 77
		require.NoError(t, store.Save(n, calibration.Kept{Choices: c, Done: calibration.Experiments}))
		_, all = reports(t, n, func(rank int) calibration.Policy {
			if rank > 0 {
				return calibration.Policy{Fixed: map[string]int{"chunk": 64 << 10}}
			}
			return auto(rank)
		})
		for _, r := range all {
			require.Equal(t, calibration.Report{Choices: c, Ranks: n, Source: calibration.FromStore}, r)
		}
	}
}

// A user's fixed choices override the measured ones, and are not kept.
func TestFixedChoices(t *testing.T) {
	store := &calibration.Store{Dir: t.TempDir(), Version: "test"}
	_, all := reports(t, 2, func(int) calibration.Policy {
		return calibration.Policy{Mode: calibration.Auto, Store: store, Fixed: map[string]int{"chunk": 20 << 10}}
	})
	for _, r := range all {
		require.Equal(t, 20<<10, r.Choices.Chunk)
	}
	_, ok := store.Load(2)
	require.False(t, ok)
}

// Sums are right while some or all ranks use non-temporal stores.
func TestFarRanks(t *testing.T) {
	for _, text := range []string{"off,stream-least=1,string-least=off", "off,small=16K,stream-least=100,chunk=20K"} {
		policy, err := calibration.Parse(text)
		require.NoError(t, err)
		for _, n := range []int{2, 3, 5} {
			for far := 1; far <= n; far++ {
				views, transports, errs := join(t, n, oneHost, func(int) shm.Options { return shm.Options{Must: true, Calibration: policy} })
				var still []func() bool
				for rank, err := range errs {
					require.NoError(t, err)
					if rank < far {
						still = append(still, shm.StayFar(transports[rank]))
					}
				}
				groups := collectivetest.Groups(t, views, transports, collective.Options{})
				sums(t, groups, 1<<17)
				gathers(t, groups, 1<<14)
				for _, far := range still {
					require.True(t, far())
				}
			}
		}
	}
}

// Whatever was chosen, sums are right.
func TestEveryChoice(t *testing.T) {
	for _, text := range []string{
		"off,small=64,chunk=16K,string-least=1,in-place-step=1K,polls=1,rounds=1,yields=1",
		"off,small=16K,chunk=256K,string-least=off,stream-least=off",
		"off,small=4K,chunk=20K,read-least=64K,read-most=1G,read-chunk=64K",
	} {
		policy, err := calibration.Parse(text)
		require.NoError(t, err)
		for _, n := range []int{2, 3} {
			groups, _ := reports(t, n, func(int) calibration.Policy { return policy })
			sums(t, groups, 1<<18)
			gathers(t, groups, 1<<10)
		}
	}
}
