package bench

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/device"
	"github.com/ringtrain/ringtrain/trainer/job/tuned"
)

// twoGPUs are the devices of a machine with two GPUs.
func twoGPUs() ([]cuda.Info, error) {
	return []cuda.Info{{Index: 0, Name: "H200"}, {Index: 1, Name: "H200"}}, nil
}

// onGPUs measures between two ranks on GPUs.
func onGPUs() *CollectiveRun {
	return &CollectiveRun{
		Spec:  Spec{Op: "allreduce", DType: collective.Float32, Reduction: collective.Sum, Check: true, Way: "any"},
		Ranks: 2, Memory: Heap, Hosts: "local", Place: crew.Place{Nodes: 1, Transport: "auto"}, Device: device.Choice{Device: "cuda"},
	}
}

// Ranks get a GPU each. What sums there, and in which order, is part of the way that all
// ranks must have in common.
func TestCheckDevicePlacesRanks(t *testing.T) {
	f := onGPUs()
	require.NoError(t, f.checkDevice(twoGPUs))
	require.Equal(t, "GPU 0, 1 (H200)", f.Placement.String())
	require.Equal(t, []int{0, 1}, []int{f.Placement.GPU(0), f.Placement.GPU(1)})
	other := onGPUs()
	other.Device.NCCL = "off"
	require.NoError(t, other.checkDevice(twoGPUs))
	given := onGPUs()
	given.Order.Given = true
	require.NoError(t, given.checkDevice(twoGPUs))
	require.Len(t, map[string]bool{"any": true, f.Spec.Way: true, other.Spec.Way: true, given.Spec.Way: true}, 4, "four ways")

	cpu := onGPUs()
	cpu.Device.Device = "cpu"
	require.NoError(t, cpu.checkDevice(func() ([]cuda.Info, error) {
		t.Error("nobody asked for a GPU")
		return nil, nil
	}))
	require.Equal(t, "any", cpu.Spec.Way)
	require.False(t, cpu.Placement.OnGPU())
}

// What GPUs cannot do is refused before a process starts, with the flag to change.
func TestCheckDeviceRefuses(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(f *CollectiveRun)
	}{
		{"--device must be auto, cpu, cuda or cuda:I, where I is the number of a GPU, not ", func(f *CollectiveRun) { f.Device.Device = "tpu" }},
		{"--nccl must be auto, must or off, not ", func(f *CollectiveRun) { f.Device.NCCL = "maybe" }},
		{"--device cuda: --transport inproc runs all workers in one process", func(f *CollectiveRun) { f.Place.Transport = crew.TransportInProcess }},
		{"--device cuda: --hosts netns emulates links between hosts, which GPUs of one host do not use; use --device cpu", func(f *CollectiveRun) { f.Hosts = Namespaces }},
		{"--device cuda: --memory selects host memory; remove it", func(f *CollectiveRun) { f.Memory = Shared }},
		{"--device cuda: 3 processes for 2 GPUs: start fewer, or add --share-gpu", func(f *CollectiveRun) { f.Ranks = 3 }},
		{"--device cuda:2: there is no GPU 2", func(f *CollectiveRun) { f.Device.Device = "cuda:2" }},
		{"--algorithm applies only to sums on the host; add --nccl off", func(f *CollectiveRun) { f.Algorithm = "ring" }},
		{"-o avg: NCCL rounds before it adds, so with 6 ranks results cannot be checked exactly; use -c 0 or a power of two", func(f *CollectiveRun) {
			f.Spec.Reduction, f.Place.Nodes = collective.Mean, 3
		}},
		{"--nccl must: NCCL sums only on GPUs, and the workers compute on the CPU: use --device cuda", func(f *CollectiveRun) {
			f.Device = device.Choice{Device: "cpu", NCCL: "must"}
		}},
	} {
		f := onGPUs()
		c.change(f)
		err := f.checkDevice(twoGPUs)
		require.ErrorContains(t, err, c.want)
	}
}

// Sums on the host may use any algorithm, and means can be checked where NCCL does not add
// or rounds nothing.
func TestCheckDeviceAllows(t *testing.T) {
	for name, change := range map[string]func(f *CollectiveRun){
		"an algorithm of the host":     func(f *CollectiveRun) { f.Device.NCCL, f.Algorithm = "off", "ring" },
		"an algorithm in ring order":   func(f *CollectiveRun) { f.Order, f.Algorithm = tuned.Choice{Order: "ring", Given: true}, "ring" },
		"means of two ranks":           func(f *CollectiveRun) { f.Spec.Reduction = collective.Mean },
		"means that nobody checks":     func(f *CollectiveRun) { f.Spec.Reduction, f.Spec.Check, f.Place.Nodes = collective.Mean, false, 3 },
		"means that the host computes": func(f *CollectiveRun) { f.Spec.Reduction, f.Device.NCCL, f.Place.Nodes = collective.Mean, "off", 3 },
	} {
		f := onGPUs()
		change(f)
		require.NoError(t, f.checkDevice(twoGPUs), name)
		require.True(t, f.Placement.OnGPU(), name)
	}
	require.Equal(t, site{}, onCPU(device.Placement{}), "nobody looked for a GPU")
	require.Equal(t, site{device: "the CPU (no driver)"}, onCPU(device.OnCPU("no driver")))
}
