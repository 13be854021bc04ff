package bench

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/device"
)

// A size is refused if the vectors of all ranks of this machine do not fit. Ranks of other
// machines do not count.
func TestRoom(t *testing.T) {
	for _, c := range []struct {
		op   string
		gpus bool
		free bool   // without checks
		need uint64 // bytes of three ranks, of six on two machines, with sizes up to 6 KiB
	}{
		{"allreduce", false, false, 3 * 3 * 6 << 10},
		{"allreduce", false, true, 3 * 2 * 6 << 10},
		{"allgather", false, false, 3 * (1 + 6 + 6) << 10},
		{"reducescatter", false, true, 3 * (6 + 6) << 10},
		{"alltoall", false, false, 3 * 3 * 6 << 10},
		{"allreduce", true, false, 3 * 2 * 6 << 10},
		{"allgather", true, true, 3 * 1 << 10},
	} {
		f := &CollectiveRun{
			Spec:  Spec{Op: c.op, DType: collective.Float32, Check: !c.free, Sizes: []int{4, 6 << 10}},
			Ranks: 3, Memory: Heap, Place: crew.Place{Nodes: 2},
		}
		if c.gpus {
			f.Placement = onThree(t)
		}
		require.NoError(t, f.fits(c.need), c)
		require.ErrorContains(t, f.fits(c.need-1), "sizes up to 6K: the vectors of this machine's ranks take ", c)
	}
	f := &TuneRun{Workers: 3, Sizes: []int{4, 1 << 10}, Place: crew.Place{Nodes: 2}}
	require.NoError(t, f.fits(3<<10))
	require.ErrorContains(t, f.fits(3<<10-1), "sizes up to 1K: the vectors of this machine's ranks take 3.07e-06 GB, more than the 3.07e-06 GB of its memory: lower -e or --workers")
}

// onThree returns a placement of three ranks on a GPU each.
func onThree(t *testing.T) device.Placement {
	t.Helper()
	choice := device.Choice{Device: "cuda"}
	p, err := choice.Place(3, nil, func() ([]cuda.Info, error) { return make([]cuda.Info, 3), nil })
	require.NoError(t, err)
	return p
}
