package device

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn/gpu"
)

func TestChoiceCheck(t *testing.T) {
	for _, good := range []Choice{{}, {Device: "auto", NCCL: "auto"}, {Device: "cpu", NCCL: "off"}, {Device: "cuda", NCCL: "must"}, {Device: "cuda:0"}, {Device: "cuda:12"}} {
		require.NoError(t, good.Check(), "%+v", good)
	}
	for _, device := range []string{"gpu", "CUDA", "cuda:", "cuda:-1", "cuda:x", "cuda:1.5", "cuda1"} {
		require.EqualError(t, (&Choice{Device: device}).Check(), "--device must be auto, cpu, cuda or cuda:I, where I is the number of a GPU, not "+strconv.Quote(device))
	}
	require.EqualError(t, (&Choice{NCCL: "yes"}).Check(), "--nccl must be auto, must or off, not \"yes\"")
}

func TestGraphsCheck(t *testing.T) {
	for _, c := range []struct {
		Graphs
		err      string
		demanded bool
	}{
		{Graphs: Graphs{How: "auto", PerLaunch: 1}},
		{Graphs: Graphs{How: "whole", PerLaunch: 64}, demanded: true},
		{Graphs: Graphs{How: "apart", PerLaunch: 1}, demanded: true},
		{Graphs: Graphs{How: "off", PerLaunch: 1}},
		{Graphs: Graphs{How: "none", PerLaunch: 1}, err: "--graphs must be auto, whole, apart or off, not \"none\""},
		{Graphs: Graphs{How: "auto"}, err: "--steps-per-launch must be from 1 to 64, not 0"},
		{Graphs: Graphs{How: "auto", PerLaunch: 65}, err: "--steps-per-launch must be from 1 to 64, not 65"},
		{Graphs: Graphs{How: "off", PerLaunch: 2}, err: "--steps-per-launch 2 needs graphs: remove --graphs off"},
	} {
		require.Equal(t, c.demanded, c.Demanded())
		if c.err == "" {
			require.NoError(t, c.Check())
		} else {
			require.EqualError(t, c.Check(), c.err)
		}
	}
}

// --nccl must is refused where NCCL cannot sum. The error names the flag to change.
func TestCheckNCCL(t *testing.T) {
	must, onGPU := Choice{NCCL: "must"}, Placement{gpus: []int{0, 1}, info: []cuda.Info{{}, {}}}
	require.NoError(t, must.CheckNCCL(Placement{}, collective.RingOrder, 1), "one rank has nothing to sum")
	require.NoError(t, (&Choice{NCCL: "auto"}).CheckNCCL(Placement{}, collective.RingOrder, 2))
	require.EqualError(t, must.CheckNCCL(OnCPU("there is no GPU"), collective.AnyOrder, 2),
		"--nccl must: NCCL sums only on GPUs, and the workers compute on the CPU (there is no GPU): use --device cuda")
	require.EqualError(t, must.CheckNCCL(onGPU, collective.RingOrder, 2), "--nccl must: NCCL does not keep ring order: remove --order ring")
	require.True(t, (&Choice{NCCL: "off"}).HostAdds(collective.AnyOrder))
	require.False(t, (&Choice{}).HostAdds(collective.AnyOrder))
	require.True(t, must.HostAdds(collective.RingOrder))
}

// The memory of one worker, summed by hand, and of several workers on one GPU.
func TestNeed(t *testing.T) {
	n := Need{Parameters: 3 << 20, Activations: 5 << 20, Data: 1 << 19, Library: 32 << 20}
	require.Equal(t, "40.5 MiB (3.0 MiB for values, gradients and optimizer, 5.0 MiB for activations, 0.5 MiB for data and batches, 32.0 MiB for workspaces)", n.String())
	require.Equal(t, "2.0 GiB", size(2<<30))
	require.Equal(t, 32<<20, LibraryMemory(false))
	require.Equal(t, 32<<20+cuda.DNNWorkspace, LibraryMemory(true))

	small := cuda.Info{Index: 3, Name: "small", Memory: 81 << 20}
	two := Placement{gpus: []int{3, 3}, info: []cuda.Info{small, small}, shared: true}
	require.NoError(t, two.CheckMemory(n), "twice 40.5 of 81 MiB")
	n.Data++
	err := two.CheckMemory(n)
	require.ErrorContains(t, err, "GPU 3 (small) has 81.0 MiB of memory, and each of 2 workers needs about 40.5 MiB (")
	require.ErrorContains(t, err, "lower --batch or evaluation.batch_size")
	require.NoError(t, Placement{gpus: []int{3}, info: []cuda.Info{small}}.CheckMemory(n))
	n.Activations = 1 << 62
	require.ErrorContains(t, two.CheckMemory(n), "each of 2 workers", "two of them overflow an int")
	require.NoError(t, OnCPU("").CheckMemory(n))
}

// Every GPU is checked, not only the first.
func TestNeedOfEachGPU(t *testing.T) {
	large, small := cuda.Info{Index: 0, Name: "L", Memory: 1 << 40}, cuda.Info{Index: 1, Name: "S", Memory: 1 << 20}
	p := Placement{gpus: []int{0, 1}, info: []cuda.Info{large, small}}
	require.ErrorContains(t, p.CheckMemory(Need{Data: 1<<20 + 1}), "GPU 1 (S) has 1.0 MiB of memory, and a worker needs")
	require.NoError(t, p.CheckMemory(Need{Data: 1 << 20}))
}

// On the CPU Open returns nil, whose methods do nothing.
func TestNoGPU(t *testing.T) {
	g, err := Open(OnCPU(""), 0, Use{})
	require.NoError(t, err)
	require.Nil(t, g)
	require.Nil(t, g.Engines())
	g.Close()
	ctx, end := g.Engines().WhileWhole(t.Context())
	require.Equal(t, t.Context(), ctx)
	end()
}

// A worker does not wait forever for a GPU that hangs.
func TestLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, release := time.Now(), make(chan struct{})
		LetGo(func() error { return errors.New("already reported") })
		require.Zero(t, time.Since(begin))
		LetGo(func() error { <-time.After(letGoTime - 1); return nil })
		require.Equal(t, letGoTime-1, time.Since(begin), "it waits for what ends in time")
		begin = time.Now()
		LetGo(func() error { <-release; return nil })
		require.Equal(t, letGoTime, time.Since(begin))
		close(release)
	})
}

// The choices of --time-products are saved at once for the next run, along with earlier
// ones.
func TestTimedChoicesAreKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "timed")
	on := cuda.Info{Name: "H200"}
	var first, next gpu.Options
	f := Products{Timed: dir}
	require.NoError(t, f.timing(&first, on, 1))
	require.True(t, first.Timed)
	require.Empty(t, first.Choices)
	require.NoError(t, first.Chosen(map[string]int{"a": 1}))
	require.NoError(t, first.Chosen(map[string]int{"b": 2}))
	require.FileExists(t, filepath.Join(dir, "products-1.json"))
	require.NoError(t, f.timing(&next, on, 1))
	require.Equal(t, map[string]int{"a": 1, "b": 2}, next.Choices)
	var neighbour gpu.Options
	require.NoError(t, f.timing(&neighbour, on, 0))
	require.Empty(t, neighbour.Choices, "each worker has a file of its own")
	require.ErrorContains(t, f.timing(&neighbour, cuda.Info{Name: "H100"}, 1), "and this machine has H100 with")

	require.NoError(t, os.RemoveAll(dir))
	require.ErrorContains(t, first.Chosen(nil), "saving the choices of --time-products in "+dir)
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, (&Products{Timed: file}).timing(&next, on, 0), "--time-products: ")
	require.NoError(t, (&Products{}).timing(&neighbour, on, 0))
}

func TestMultiplierNames(t *testing.T) {
	plain := (&Products{}).Multiplier(false)
	require.Equal(t, plain+", TF32", (&Products{TF32: true}).Multiplier(false))
	require.Equal(t, plain+", bf16, timed", (&Products{BF16: true, Timed: "d"}).Multiplier(false))
	require.False(t, (&Products{Timed: "d"}).ByCuDNN(0, 128), "a model without convolutions")
}
