package device

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/ncclgroup"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

// What each --device makes of machines with and without GPUs. Only auto falls back to the
// CPU, and it says why; cuda is an error that names the flag. A program that is built
// without GPUs looks for none with auto.
func TestPlace(t *testing.T) {
	found := func(n int) func() ([]cuda.Info, error) {
		return func() (all []cuda.Info, err error) {
			for i := range n {
				all = append(all, cuda.Info{Index: i, Name: "A"})
			}
			return all, nil
		}
	}
	missing := errors.New("cuBLASLt cannot be loaded")
	broken := func() ([]cuda.Info, error) { return nil, missing }
	for _, c := range []struct {
		name    string
		choice  Choice
		workers int
		why     error // the work needs the CPU
		devices func() ([]cuda.Info, error)
		gpus    []int
		text    string // why on the CPU
		err     string
	}{
		{name: "default", choice: Choice{}, workers: 1, devices: broken},
		{name: "cpu", choice: Choice{Device: "cpu"}, workers: 9, devices: broken},
		{name: "cpu, whatever the work", choice: Choice{Device: "cpu"}, workers: 1, why: ErrCompressed, devices: broken},
		{name: "auto", choice: Choice{Device: "auto"}, workers: 2, devices: found(2), gpus: []int{0, 1}},
		{name: "auto with too few", choice: Choice{Device: "auto"}, workers: 3, devices: found(2), text: "3 processes for 2 GPUs: start fewer, or add --share-gpu"},
		{name: "auto that may share", choice: Choice{Device: "auto", Share: true}, workers: 3, devices: found(2), gpus: []int{0, 1, 0}},
		{name: "auto without GPUs", choice: Choice{Device: "auto"}, workers: 1, devices: found(0), text: "there is no GPU 0"},
		{name: "auto without a library", choice: Choice{Device: "auto"}, workers: 1, devices: broken, text: missing.Error()},
		{name: "auto for the CPU", choice: Choice{Device: "auto"}, workers: 1, why: ErrInProcess, devices: found(1), text: ErrInProcess.Error()},
		{name: "cuda", choice: Choice{Device: "cuda"}, workers: 2, devices: found(4), gpus: []int{0, 1}},
		{name: "cuda:1", choice: Choice{Device: "cuda:1"}, workers: 2, devices: found(4), gpus: []int{1, 2}},
		{name: "cuda with too few", choice: Choice{Device: "cuda"}, workers: 3, devices: found(2), err: "--device cuda: 3 processes for 2 GPUs: start fewer, or add --share-gpu"},
		{name: "cuda without GPUs", choice: Choice{Device: "cuda"}, workers: 1, devices: found(0), err: "--device cuda: there is no GPU 0"},
		{name: "cuda without a library", choice: Choice{Device: "cuda"}, workers: 1, devices: broken, err: "--device cuda: cuBLASLt cannot be loaded"},
		{name: "cuda for the CPU", choice: Choice{Device: "cuda"}, workers: 1, why: ErrCompressed, devices: found(1), err: "--device cuda: gradients are compressed in host memory"},
		{name: "cuda:1 of one", choice: Choice{Device: "cuda:1"}, workers: 1, devices: found(1), err: "--device cuda:1: there is no GPU 1, the GPUs are 0 to 0"},
		{name: "unknown", choice: Choice{Device: "tpu"}, workers: 1, devices: found(1), err: "--device must be auto, cpu, cuda or cuda:I"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := c.choice.Place(c.workers, c.why, c.devices)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				require.Equal(t, Placement{}, p)
				return
			}
			require.NoError(t, err)
			if c.choice.Device == Auto && cuda.Built() != nil {
				c.gpus, c.text = nil, "" // it asks for no device
			}
			require.Equal(t, c.gpus, p.gpus)
			require.Equal(t, c.gpus != nil, p.OnGPU())
			require.True(t, strings.HasPrefix(p.Why(), c.text), p.Why())
			require.Equal(t, c.text == "", p.Why() == "")
			for local, at := range c.gpus {
				require.Equal(t, at, p.GPU(local))
			}
		})
	}
}

// Only GPUs that have several workers are shared: the environment of other jobs stays as
// it is.
func TestSharing(t *testing.T) {
	p := Placement{gpus: []int{0, 1, 0}, info: make([]cuda.Info, 3)}
	require.Equal(t, []int{2, 1, 0}, []int{p.sharing(0), p.sharing(1), p.sharing(2)})
	require.Equal(t, "the CPU", OnCPU("").String())
	require.Equal(t, "the CPU (no driver)", OnCPU("no driver").String())
	require.Equal(t, "no driver", OnCPU("no driver").Why())
}

// A group gets a different engine only on a GPU, or where machines must be compared.
func TestEngineOf(t *testing.T) {
	require.Nil(t, EngineOf(nil, 1))
	require.NotNil(t, EngineOf(&Accelerator{}, 1))
	compare := EngineOf(nil, 2)
	views, transports := collective.Local(2)
	groups := make([]*collective.Group, 2)
	errs := make([]error, 2)
	both := collectivetest.Local(t, 2) // to run both ranks
	collectivetest.Run(t, both, func(ctx context.Context, g *collective.Group) {
		r := g.Rank()
		base := collective.OverTransport(views[r], transports[r])
		e, err := compare(ctx, views[r], base)
		if errs[r] = err; err == nil {
			require.Same(t, base, e, "on the CPU the engine of the cluster stays")
			groups[r] = collective.NewGroup(views[r], e, collective.Options{})
			errs[r] = groups[r].Barrier(ctx)
		}
	})
	require.Equal(t, []error{nil, nil}, errs)
	for _, g := range groups {
		require.NoError(t, g.Close())
	}
}

// If machines differ, the engine is closed, because no other rank has one.
func TestEngineOfOtherMachines(t *testing.T) {
	views, transports := collective.Local(2)
	bases := []*collective.HostEngine{collective.OverTransport(views[0], transports[0]), collective.OverTransport(views[1], transports[1])}
	collectivetest.Ranks(t, 2, func(ctx context.Context, g *collective.Group) {
		var a *Accelerator
		if g.Rank() == 1 {
			a = &Accelerator{}
		}
		_, err := EngineOf(a, 2)(ctx, views[g.Rank()], bases[g.Rank()])
		require.ErrorAs(t, err, new(*crew.UsageError))
		require.ErrorContains(t, err, "use the same --device, cpu or cuda, on every machine")
		err = bases[g.Rank()].Agree(ctx, collective.Header{Call: collective.Call{Kind: collective.KindBarrier}})
		require.ErrorIs(t, err, collective.ErrClosed)
	})
}

// A group of one rank has nothing to sum, so NCCL is neither used nor missed.
func TestAcceleratorOfOneRank(t *testing.T) {
	a := onOneRank(t)
	require.Equal(t, "alone", a.Plan("ring"))
	require.Empty(t, a.Without())
	require.False(t, a.ByNCCL())
	var stderr bytes.Buffer
	a.TellWithout(0, &stderr)
	(*Accelerator)(nil).TellWithout(0, &stderr)
	require.Empty(t, stderr.String())
	require.Empty(t, (*Accelerator)(nil).Without())
}

// onOneRank returns an Accelerator whose group has one rank, which needs no device.
func onOneRank(t *testing.T) *Accelerator {
	a := NewAccelerator(nil, cuda.Stream{}, Choice{NCCL: "must"}, collective.AnyOrder)
	require.Equal(t, ncclgroup.Must, a.nccl)
	return a
}

// A group of one rank refuses calls on device memory that would move data.
func TestAloneRefuses(t *testing.T) {
	views, transports := collective.Local(1)
	e := alone{collective.OverTransport(views[0], transports[0]), 1}
	g := collective.NewGroup(views[0], e, collective.Options{})
	defer g.Close()
	v := collective.OnDevice(1, 4096, 8, collective.Float32)
	err := g.AllGather(t.Context(), v, v)
	require.ErrorIs(t, err, collective.ErrUnsupported)
	require.ErrorContains(t, err, "device memory in a group of one rank")
	require.True(t, e.Reaches(v))
	require.False(t, e.Reaches(collective.OnDevice(2, 4096, 8, collective.Float32)))
	require.True(t, e.Reaches(collective.Of([]float32{1})))
}

// The name of what multiplies says how it rounds, and that kernels were timed, in one order.
func TestMultiplierListsAll(t *testing.T) {
	require.True(t, strings.HasSuffix((&Products{TF32: true, BF16: true, Timed: "d"}).Multiplier(false), ", TF32, bf16, timed"))
}

// Choices of --time-products come from a file that others can write. Any content gives either
// choices or an error.
func FuzzReadTimed(f *testing.F) {
	f.Add([]byte(`{"gpu": "G", "blas": "B", "choices": {"a": 2}}`))
	f.Add([]byte(`{"gpu": "G", "blas": "B", "choices": null}`))
	f.Add([]byte(`[]`))
	path := filepath.Join(f.TempDir(), "products-0.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		require.NoError(t, os.WriteFile(path, text, 0o600))
		choices, err := readTimed(path, timedProducts{GPU: "G", BLAS: "B"})
		if err != nil {
			require.Nil(t, choices)
			require.Contains(t, err.Error(), path)
		}
	})
}
