package job

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// A waiting layer takes time without using a core, so that more workers than there are cores
// take no time from each other.
type waiting struct{ time.Duration }

// Init implements nn.Layer.
func (w waiting) Init(in, _ []int, _ *nn.Builder) ([]int, error) { return in, nil }

// Forward implements nn.Layer: it returns x.
func (w waiting) Forward(p *nn.Pass, x nn.Tensor) (nn.Tensor, nn.Backprop) {
	if p.Train {
		<-time.After(w.Duration)
	}
	return x, func(dy nn.Tensor) nn.Tensor { return dy }
}

// withWaiting returns a catalog with the layer waiting.v1.
func withWaiting(d time.Duration) *catalog.Catalog {
	c := catalog.New()
	err := c.Registry.Register("layers", "waiting.v1", config.Func{Doc: "waits", Make: func(config.Args) (any, error) { return waiting{d}, nil }})
	if err != nil {
		panic(err)
	}
	return c
}

// slowModel is a network whose steps take time on no core.
const slowModel = `[training]
batch_size = 32
[evaluation]
frequency = 0
[model]
@layers = "chain.v1"
[model.*.wait]
@layers = "waiting.v1"
[model.*.network]
@layers = "relu_relu_softmax.v1"
hidden_width = 32
dropout = 0.1
[optimizer]
@optimizers = "Adam.v1"
`

// A worker that is ten times as slow as the others costs hardly any time if the servers do
// not wait for it, and little accuracy. It reports the times, which other programs on this
// machine change.
func TestQuorumWithAStraggler(t *testing.T) {
	collectivetest.Slow(t)
	const steps, wait = 200, 20 * time.Millisecond
	dir := t.TempDir()
	train, test := data.Generate(data.DigitsOptions{Train: 4000, Test: 1000, Side: 12})
	require.NoError(t, data.WriteMNIST(dir, train, test))
	path := filepath.Join(dir, "slow.cfg")
	require.NoError(t, os.WriteFile(path, []byte(slowModel), 0o600))
	run := func(s sharedSpec) (*event.Result, *event.Staleness) {
		s.Config, s.Data, s.Workers, s.Servers, s.Wait = path, "mnist:"+dir, 4, "1", wait
		h := new(heard)
		require.NoError(t, Run(t.Context(), s.spec(), s.share(t, h)), h.said())
		stale := eventsOf[*event.Staleness](h)
		if len(stale) == 0 {
			stale = append(stale, nil)
		}
		return resultOf(t, h), stale[0]
	}
	even, _ := run(sharedSpec{Steps: steps, Quorum: 3})
	one, stale := run(sharedSpec{Steps: steps, Quorum: 3, Straggler: 3})
	all, _ := run(sharedSpec{Steps: steps / 10, Straggler: 3})
	t.Logf("%d steps of 4 workers, quorum 3: %.2f s, accuracy %.3f", even.Steps, even.Seconds, even.Metrics.Value("accuracy"))
	t.Logf("one worker 10 times as slow: %.2f s, %.2f times as long, accuracy %.3f, %.1f %% of gradients discarded",
		one.Seconds, one.Seconds/even.Seconds, one.Metrics.Value("accuracy"), stale.Discarded)
	t.Logf("waiting for all: %.2f s for %d steps, %.2f times as long per step", all.Seconds, all.Steps, 10*all.Seconds/even.Seconds)
	require.Equal(t, []int{steps, steps, steps / 10}, []int{even.Steps, one.Steps, all.Steps})
	require.InDelta(t, even.Metrics.Value("accuracy"), one.Metrics.Value("accuracy"), .05)
	require.Positive(t, stale.Late, "the straggler's")
	require.GreaterOrEqual(t, all.Seconds, steps*wait.Seconds(), "waiting for all is as slow as the slowest")
}
