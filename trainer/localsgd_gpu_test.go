//go:build gpu && cgo && linux

package trainer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/ncclgroup"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// On devices, rounds end with equal values on all ranks, near those of CPUs, whether NCCL or
// the host sums them.
func TestDeviceRounds(t *testing.T) {
	plain := job{ranks: 2, batch: 16, steps: 25, optimizer: optim.DefaultAdam()}
	rounds := plain.inRounds(trainer.DiLoCo(10), noCompression)
	want := rounds.run(t)[0]
	require.NoError(t, want.err)
	for _, use := range []ncclgroup.Use{ncclgroup.Must, ncclgroup.Off} {
		out := rounds.onDevicesBy(t, use, nil)
		for _, o := range out {
			require.NoError(t, o.err)
			require.Equal(t, out[0].values, o.values)
			for i := range want.values {
				require.InDelta(t, want.values[i], o.values[i], 1e-3, "element %d", i)
			}
		}
	}
}
