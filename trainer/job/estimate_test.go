package job

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/device"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// estimateOf returns the estimate of a Spec.
func estimateOf(t *testing.T, f Spec) *Estimate {
	e, err := describe(t, f).Estimate()
	require.NoError(t, err)
	return e
}

// An estimate agrees with the job: the bytes that a worker sends per step, the compression
// ratio, and the size of a checkpoint.
func TestEstimateIsWhatHappens(t *testing.T) {
	for _, compress := range []string{"none", "bf16", "fp16", "int8", "topk:0.05"} {
		for _, workers := range []int{1, 2, 3} {
			f := tinySpec(t)
			f.Workers, f.Gradients.Compress, f.Saving.Dir = workers, compress, t.TempDir()
			e, h := estimateOf(t, f), run(t, f)
			name := compress + " on " + string(rune('0'+workers))
			require.Equal(t, workers, e.Workers)
			require.Equal(t, 4, e.Batch)
			step := eventsOf[*event.Step](h)[3]
			if workers < 3 || strings.HasPrefix(e.Plan, "gathered") { // more ranks of one process share memory, see below
				require.Equal(t, e.Wire, step.WireBytes, name)
			}
			if workers < 3 {
				require.InDelta(t, e.Ratio, resultOf(t, h).CompressionRatio, 1e-9, name)
			}
			at6, err := checkpoint.Load(stepFile(f.Saving.Dir, 6))
			require.NoError(t, err)
			bytes := 0
			if resultOf(t, h).BestStep == 6 {
				bytes = 4 * e.Parameters // the best weights are the last
			}
			for _, one := range at6.Tensors {
				bytes += 4 * one.Tensor.Shape().TotalSize()
			}
			require.Equal(t, e.Checkpoint, bytes, name)
			info, err := os.Stat(stepFile(f.Saving.Dir, 6))
			require.NoError(t, err)
			require.Greater(t, info.Size()+int64(4*e.Parameters), int64(bytes), "and the header")
		}
	}
}

// The plan of an estimate assumes ranks that send messages, as over TCP.
func TestEstimateOverTCP(t *testing.T) {
	s, f := newShared(t)
	s.Workers, s.Transport, f.Workers = 3, "tcp", 3
	h := new(heard)
	require.NoError(t, Run(t.Context(), s.spec(), s.share(t, h)), h.said())
	e, end := estimateOf(t, f), resultOf(t, h)
	require.Equal(t, e.Plan, end.Plan)
	require.Equal(t, 6*e.Wire, end.WireBytes)
}

// A batch too large for the memory is a usage error, and so is a strategy with servers.
func TestEstimateRefuses(t *testing.T) {
	f := tinySpec(t)
	f.Batch = 1 << 50
	s, err := f.Describe()
	require.NoError(t, err)
	_, err = s.Estimate()
	var usage *crew.UsageError
	require.ErrorAs(t, err, &usage)
	require.ErrorContains(t, err, "--batch 1125899906842624: its rows take ")
	require.ErrorContains(t, err, "GB of memory of this machine")
	for _, name := range []string{psSync, psAsync, psPeers} {
		f := tinySpec(t)
		f.Strategy = name
		_, err := describe(t, f).Estimate()
		require.ErrorAs(t, err, &usage)
		require.ErrorContains(t, err, "--strategy "+name+": estimate knows allreduce, local-sgd and diloco")
	}
}

// The device memory of a worker, calculated by hand. Activations are those that Estimate
// measures with the same batch.
func TestDeviceNeed(t *testing.T) {
	need := func(change func(*Spec)) (device.Need, *Estimate) {
		f := tinySpec(t)
		f.Graphs.How = device.GraphsOff
		change(&f)
		n, err := describe(t, f).deviceNeed()
		require.NoError(t, err)
		return n, estimateOf(t, f)
	}
	const pixels, train = 64, 50
	plain, e := need(func(*Spec) {})
	require.Equal(t, 5*e.Values, plain.Parameters, "values, gradients, two moments and the average")
	require.Equal(t, 4*(pixels+1)*(4+10), plain.Data, "a training batch and a test batch")
	require.False(t, plain.ByCuDNN, "there are no convolutions")
	require.Positive(t, plain.Library)

	for _, batch := range []int{10, 11, 16} {
		grown, measured := need(func(f *Spec) { f.Batch = batch })
		require.Equal(t, measured.Activations, grown.Activations, "batch %d", batch)
	}
	ten, _ := need(func(f *Spec) { f.Batch = 10 })
	require.Equal(t, ten.Activations, plain.Activations, "10 rows are tested at once, though only 4 are trained on")
	recorded, _ := need(func(f *Spec) { f.Graphs.How = device.GraphsWhole })
	require.Equal(t, plain.Data+train*(pixels+8), recorded.Data, "the rows are on the device")
	require.Equal(t, e.Activations+ten.Activations, recorded.Activations, "those of graphs, and those of evaluations")
	micro, _ := need(func(f *Spec) { f.Accumulate = 2 })
	require.Equal(t, 6*e.Values, micro.Parameters, "plus the sum of gradients")
	require.Equal(t, 4*(pixels+1)*(8+10), micro.Data, "without graphs, the rows are not on the device")
	faithful, _ := need(func(f *Spec) { f.Gradients.Faithful = true })
	require.Equal(t, 6*e.Values, faithful.Parameters)
	half, _ := need(func(f *Spec) { f.Products.BF16 = true })
	require.Greater(t, half.Activations, plain.Activations, "with copies of half the size")
	require.LessOrEqual(t, half.Activations, 2*plain.Activations+2*e.Values)
	sgd, _ := need(func(f *Spec) { f.Overrides = []config.Override{{Path: "optimizer.@optimizers", Raw: "SGD.v1"}} })
	require.Less(t, sgd.Parameters, plain.Parameters)
}

// A worker on the CPU opens no GPU.
func TestNoGPU(t *testing.T) {
	s := describe(t, tinySpec(t))
	require.NoError(t, s.checkDeviceMemory())
	h := new(heard)
	gpu, err := s.openGPU(t.Context(), 0, h)
	require.NoError(t, err)
	require.Nil(t, gpu)
	require.Empty(t, h.said())
	require.NotEmpty(t, s.multiplier())
}

// The meter finds the multiply-adds per row of the largest convolution, which decide whether
// cuDNN computes it.
func TestNeedOfConvolutions(t *testing.T) {
	f := NewSpec(tinySpec(t).Catalog, filepath.FromSlash("../../examples/convnet.cfg"))
	e := estimateOf(t, f)
	require.Greater(t, e.Activations, e.Values, "convolutions have few parameters and large activations")
	backend := &meter{Backend: cpu.New(cpu.Options{})}
	defer backend.Backend.Close()
	f.Graphs.How, f.Workers = device.GraphsWhole, 1
	s := describe(t, f)
	sums := 0
	backend.convGrad = func(products, weights, filters int) {
		sums += s.Spec.Products.ConvGradMemory(products, s.Batch, weights, filters)
	}
	probe, err := s.Problem.Probe(backend)
	require.NoError(t, err)
	learn := func(rows int) { require.NoError(t, probe.Learn(&nn.Pass{Backend: backend, Train: true}, rows)) }
	backend.Recycle()
	require.Zero(t, backend.bytes)
	learn(1)
	one, products := backend.bytes, backend.products
	require.Positive(t, products)
	require.Positive(t, sums)
	need, err := s.deviceNeed()
	require.NoError(t, err)
	require.Equal(t, (s.Batch+s.evalBatch)*one+sums, need.Activations)
	backend.Recycle()
	learn(3)
	require.Equal(t, products, backend.products, "of one row")
	require.Equal(t, 3*one, backend.bytes)
}
