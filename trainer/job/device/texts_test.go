package device

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/ncclgroup"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nccl"
)

// What the user reads about sums on GPUs: who adds, in which order, over what, and why not
// NCCL.
func TestSummingIsDescribed(t *testing.T) {
	missing := fmt.Errorf("%w: libnccl.so.2 cannot be loaded", cuda.ErrUnavailable)
	known := func() (nccl.Version, error) { return 22703, nil }
	for _, c := range []struct {
		name      string
		without   error
		order     collective.Order
		version   func() (nccl.Version, error)
		plan      string
		transport string
	}{
		{"NCCL", nil, collective.AnyOrder, known, "NCCL 2.27.3, in an order of its own", "nccl"},
		{"NCCL of an unknown version", nil, collective.AnyOrder, func() (nccl.Version, error) { return 0, missing }, "NCCL", "nccl"},
		{"ring order", nil, collective.RingOrder, known, "host memory, because NCCL does not keep ring order: ring", "staged-tcp"},
		{"no library", missing, collective.AnyOrder, known, "host memory, without NCCL: ring", "staged-tcp"},
		{"no library, ring order", missing, collective.RingOrder, known, "host memory, without NCCL: ring", "staged-tcp"},
	} {
		require.Equal(t, c.plan, planText("ring", c.without, c.order, c.version), c.name)
		require.Equal(t, c.transport, transportText("tcp", c.without, c.order), c.name)
	}
	require.Empty(t, withoutText(nil))
	require.Equal(t, "; without NCCL: libnccl.so.2 cannot be loaded", withoutText(missing))
	require.Equal(t, "; without NCCL: --nccl off", withoutText(errors.New("--nccl off")))
}

// The user is told that NCCL is missed only where it would have summed.
func TestFallbackIsTold(t *testing.T) {
	const why = "; without NCCL: two GPUs are one; really"
	for _, c := range []struct {
		use     ncclgroup.Use
		order   collective.Order
		without string
		want    string
	}{
		{ncclgroup.Auto, collective.AnyOrder, why, "ringtrain: gradients are summed in host memory, without NCCL: two GPUs are one; really\n"},
		{ncclgroup.Must, collective.AnyOrder, why, "ringtrain: gradients are summed in host memory, without NCCL: two GPUs are one; really\n"},
		{ncclgroup.Off, collective.AnyOrder, why, ""},
		{ncclgroup.Auto, collective.RingOrder, why, ""},
		{ncclgroup.Auto, collective.AnyOrder, "", ""},
	} {
		require.Equal(t, c.want, fallbackText(c.use, c.order, c.without), "%+v", c)
	}
}

// A worker needs what is not yet allocated of its memory, to the byte. The error says
// which GPU, how much is free, what is needed for what, and what to do.
func TestNeedOfFreeMemory(t *testing.T) {
	n := Need{Parameters: 3 << 20, Activations: 5 << 20, Data: 1 << 20, Library: LibraryMemory(false)}
	on := cuda.Info{Index: 2, Name: "small", Memory: 80 << 20}
	require.NoError(t, n.fits(on, 9<<20, 80<<20), "the workspace is allocated already")
	err := n.fits(on, 9<<20-1, 80<<20)
	require.EqualError(t, err, "GPU 2 (small) has 9.0 MiB free of 80.0 MiB of memory, and a worker needs about "+
		"9.0 MiB (3.0 MiB for values, gradients and optimizer, 5.0 MiB for activations, 1.0 MiB for data and batches, 0.0 MiB for workspaces)"+
		": lower --batch or evaluation.batch_size, make the model smaller, or use --device cpu")
	n.Library = LibraryMemory(true)
	require.ErrorContains(t, n.fits(on, 9<<20, 80<<20), "for workspaces)", "cuDNN allocates its own later")
	require.NoError(t, n.fits(on, 9<<20+cuda.DNNWorkspace, 80<<30))
}

// Workers spread over the GPUs from the first one on, evenly: none has two more than
// another.
func TestWorkersSpread(t *testing.T) {
	for gpus := 1; gpus <= 5; gpus++ {
		for first := range gpus {
			for workers := 1; workers <= 11; workers++ {
				there := make([]cuda.Info, gpus)
				for i := range there {
					there[i].Index = i
				}
				f := Choice{Share: true}
				p, err := f.onGPUs(workers, first, nil, func() ([]cuda.Info, error) { return there, nil })
				require.NoError(t, err)
				least, most := workers, 0
				for at := first; at < gpus; at++ {
					least, most = min(least, p.sharing(at)), max(most, p.sharing(at))
				}
				require.LessOrEqual(t, most-least, 1, "%d workers on %d GPUs from %d", workers, gpus, first)
				require.Equal(t, workers > gpus-first, p.shared)
				require.Equal(t, p.shared, len(p.Environ("m", 0, false)) > 0)
				for local := range workers {
					require.GreaterOrEqual(t, p.GPU(local), first)
					require.Equal(t, p.GPU(local), p.Of(local).Index)
				}
			}
		}
	}
}
