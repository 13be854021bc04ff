package job

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/device"
)

// On the CPU nothing is recorded, and the plan does not mention graphs.
func TestNothingIsRecordedOnTheCPU(t *testing.T) {
	f := tinySpec(t)
	require.Equal(t, device.GraphsAuto, f.Graphs.How)
	require.NotContains(t, resultOf(t, run(t, f)).Plan, "graph")
	r := &rank{training: describe(t, f)}
	recording, err := r.recording(t.Context())
	require.NoError(t, err)
	require.Nil(t, recording)
	require.Empty(t, recordingPlan(recording))
	views, transports := collective.Local(2)
	r.group = collectivetest.Groups(t, views, transports, collective.Options{})[0]
	require.Empty(t, r.overlap(&trainer.Config{}), "there is no GPU")
}

// Demanding graphs on the CPU is a usage error. Optional graphs are left out.
func TestDemandedGraphs(t *testing.T) {
	for _, how := range []string{device.GraphsWhole, device.GraphsApart} {
		f := tinySpec(t)
		f.Graphs.How = how
		_, err := runError(t, t.Context(), f, Options{})
		var usage *crew.UsageError
		require.ErrorAs(t, err, &usage)
		require.ErrorContains(t, err, "--graphs "+how+": the workers compute on the CPU")
	}
	for _, how := range []string{device.GraphsAuto, device.GraphsOff} {
		f := tinySpec(t)
		f.Graphs = device.Graphs{How: how, PerLaunch: 1}
		run(t, f)
	}
}

// All ranks of a group describe the same plan.
func TestPlanOfAGroup(t *testing.T) {
	for _, size := range []int{1, 2, 3} {
		views, transports := collective.Local(size)
		groups := collectivetest.Groups(t, views, transports, collective.Options{})
		p := tinyParams(t)
		plans := map[string][]string{}
		for _, g := range groups {
			for _, form := range []string{"none", "bf16", "int8", "topk:0.1"} {
				c, err := trainer.ParseCompression(form)
				require.NoError(t, err)
				plans[form] = append(plans[form], planOf(g, trainer.Buckets(p, trainer.DefaultBucket), c))
				require.Equal(t, plans[form][0], plans[form][len(plans[form])-1], "all ranks say the same")
			}
		}
		if size == 1 {
			require.Equal(t, "alone", plans["none"][0])
			require.Equal(t, "alone, as bfloat16", plans["bf16"][0])
			require.Equal(t, "alone, as int8", plans["int8"][0])
			continue
		}
		require.Contains(t, plans["none"][0], "in ring order")
		require.NotContains(t, plans["none"][0], "bucket", "there is only one")
		require.Contains(t, plans["bf16"][0], ", as bfloat16")
		require.Contains(t, plans["topk:0.1"][0], "gathered as topk:0.1 by ")
		exact, _ := trainer.ParseCompression("none")
		require.Contains(t, planOf(groups[0], trainer.Buckets(p, 512), exact), "bucket")
	}
}

// Gradients that cannot leave during the backward pass leave at once, unless some are packed
// or leave as rows, which all do in buckets.
func TestBucketsOfARank(t *testing.T) {
	be := cpu.New(cpu.Options{})
	defer be.Close()
	m, err := nn.NewPositionClassifier(be, nn.Chain(&nn.Embed{Rows: 100, Out: 4}, nn.EachPosition(&nn.Softmax{})), nn.Sequence{Positions: 2, IDs: 9, Classes: 3}, 1)
	require.NoError(t, err)
	n := m.Params().Grads.Len()
	packed, err := trainer.ParseCompression("int8")
	require.NoError(t, err)
	groups := collectivetest.Local(t, 2)
	for name, c := range map[string]struct {
		change      func(r *rank)
		usual, last []int
		plan        string
	}{
		"as ever":       {nil, []int{n - 400, 400}, []int{n}, ""},
		"packed":        {func(r *rank) { r.training.Compression, r.training.sparse = packed, trainer.SparseOn }, []int{n - 400, 400}, []int{n - 400, 400}, ""},
		"rows":          {func(r *rank) { r.training.sparse = trainer.SparseOn }, []int{n - 400, 400}, []int{n - 400, 400}, "; embedding tables (1) as rows"},
		"a small table": {func(r *rank) { r.training.sparse = trainer.SparseAuto }, []int{n - 400, 400}, []int{n}, ""},
		"servers":       {func(r *rank) { r.training.sparse, r.training.Spec.Strategy = trainer.SparseAuto, psSync }, []int{n - 400, 400}, []int{n}, ""},
		"alone":         {func(r *rank) { r.group, r.training.sparse = collectivetest.Local(t, 1)[0], trainer.SparseOn }, []int{n}, []int{n}, ""},
	} {
		r := &rank{group: groups[0], task: trainer.NewTask[nn.Batch](m, nil, nil), training: &Training{}}
		r.training.Spec.Gradients.Bucket = 20
		if c.change != nil {
			c.change(r)
		}
		require.Equal(t, c.usual, bucketsOf(r, false), name)
		require.Equal(t, c.last, bucketsOf(r, true), name)
		require.Equal(t, c.plan, rowsPlan(r), name)
	}
}

// A digest of plans is the same on all ranks, and differs with the ranks, their hosts and
// the number of gradients.
func TestPlanDigest(t *testing.T) {
	digests := func(size int, o collective.Options) []string {
		views, transports := collective.Local(size)
		var all []string
		for _, g := range collectivetest.Groups(t, views, transports, o) {
			all = append(all, planDigest(g, 5000))
		}
		return all
	}
	two := digests(2, collective.Options{})
	require.Equal(t, two[0], two[1])
	require.Len(t, two[0], 16)
	require.Equal(t, two, digests(2, collective.Options{}))
	require.NotEqual(t, two[0], digests(3, collective.Options{})[0])
	g := collectivetest.Machines(t, 3, 2)
	require.NotEqual(t, planDigest(g[0], 5000), digests(6, collective.Options{})[0], "on other hosts")
	require.NotEqual(t, planDigest(g[0], 5000), planDigest(g[0], 50_000), "more gradients, more plans")
}
