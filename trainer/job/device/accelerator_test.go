package device

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

// If some machines compute on GPUs and others on the CPU, every rank gets an error that
// says so. Otherwise their group works.
func TestSameKind(t *testing.T) {
	for _, onGPU := range [][]bool{{false, false, true}, {true, true, true}, {false, false, false}} {
		views, transports := collective.Local(len(onGPU))
		errs, sums := make([]error, len(onGPU)), make([][]float32, len(onGPU))
		var all sync.WaitGroup
		for i := range onGPU {
			all.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				base := collective.OverTransport(views[i], transports[i])
				errs[i] = sameKind(ctx, views[i], base, onGPU[i])
				cancel() // cluster does so when all have connected
				if errs[i] != nil {
					_ = base.Close()
					return
				}
				g := collective.NewGroup(views[i], base, collective.Options{})
				defer g.Close()
				sums[i] = []float32{float32(i)}
				errs[i] = collective.AllReduce(t.Context(), g, sums[i], collective.Sum)
				if errs[i] == nil {
					errs[i] = g.Barrier(t.Context())
				}
			})
		}
		all.Wait()
		for i, err := range errs {
			if onGPU[0] != onGPU[2] {
				require.ErrorContains(t, err, "rank 2 ("+views[i].Name(2)+") computes on a GPU and rank 0 ("+views[i].Name(0)+") on the CPU")
				var wrong *crew.UsageError
				require.ErrorAs(t, err, &wrong)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, []float32{3}, sums[i])
		}
	}
}

// A group of one rank needs no NCCL for calls that leave vectors unchanged.
func TestAlone(t *testing.T) {
	views, transports := collective.Local(1)
	g := collective.NewGroup(views[0], alone{collective.OverTransport(views[0], transports[0]), 1}, collective.Options{})
	defer g.Close()
	v := collective.OnDevice(1, 4096, 8, collective.Float32) // no memory is there, so an access would fail
	require.NoError(t, g.AllReduce(t.Context(), v, collective.Sum))
	require.NoError(t, g.Broadcast(t.Context(), v, 0))
	require.ErrorIs(t, g.AllReduce(t.Context(), collective.OnDevice(0, 4096, 8, collective.Float32), collective.Sum), collective.ErrUnsupported)
	words := []int64{0}
	require.NoError(t, collective.AllGather(t.Context(), g, words, []int64{7}))
	require.Equal(t, []int64{7}, words)
	require.NotNil(t, g.Situation().Hosts, "plans come from the engine below")
}
