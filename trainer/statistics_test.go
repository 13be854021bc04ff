package trainer_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// normalised gives a job a convolution with BatchNorm2D.
func normalised(t *testing.T, c *trainer.Config) {
	m, err := nn.NewClassifier(c.Backend, nn.Chain(
		&nn.Images{}, &nn.Conv2D{Out: 6, Size: 3, Stride: 2}, &nn.BatchNorm2D{}, &nn.Rectify{}, &nn.Softmax{},
	), []int{144}, 10, 5)
	require.NoError(t, err)
	taskOf(c).Model = m
}

// Running statistics are the same on every rank, and those of one rank with as many
// micro-batches bit for bit, whatever the optimizer; the last batch of an epoch is smaller.
func TestRunningStatistics(t *testing.T) {
	for name, optimizer := range map[string]optim.Optimizer{"Adam": optim.DefaultAdam(), "RAdam": optim.DefaultRAdam(), "SGD": optim.DefaultSGD(.1)} {
		for _, bucket := range []int{0, fiveBuckets} {
			t.Run(fmt.Sprint(name, bucket), func(t *testing.T) {
				tasks := make([]trainer.Task, 3)
				usual := job{batch: 23, steps: 30, optimizer: optimizer, bucket: bucket}
				usual.change = func(rank int, c *trainer.Config) {
					normalised(t, c)
					tasks[rank] = c.Task
				}
				one, many := usual, usual
				one.ranks, one.micro = 1, 3
				require.NoError(t, one.run(t)[0].err)
				p := tasks[0].Params()
				values := slices.Clone(p.Values.Float32s())
				mean, variance := p.Lookup("layers.2.running_mean"), p.Lookup("layers.2.running_var")
				for c := range 6 {
					require.NotZero(t, mean.Values.Float32s()[c])
					require.NotEqual(t, float32(1), variance.Values.Float32s()[c])
					require.Greater(t, variance.Values.Float32s()[c], float32(0))
					require.Less(t, variance.Values.Float32s()[c], float32(1))
				}
				many.ranks = 3
				for rank, got := range many.run(t) {
					require.NoError(t, got.err)
					require.True(t, slices.Equal(values, tasks[rank].Params().Values.Float32s()), "rank %d has other values", rank)
				}
			})
		}
	}
}

// What would change a mean over rows is refused, with the name of the statistic.
func TestStatisticsNeedMeans(t *testing.T) {
	for name, change := range map[string]func(c *trainer.Config){
		"set Reduce to ReduceMean":           func(c *trainer.Config) { c.Reduce = trainer.ReduceSum },
		"do not set Accumulate":              func(c *trainer.Config) { c.Accumulate = true },
		"compression bf16 would":             func(c *trainer.Config) { compressed(c, trainer.Compression{Form: trainer.BFloat16}) },
		"compression topk:0.1 would":         func(c *trainer.Config) { compressed(c, trainer.Compression{Form: trainer.TopK, Keep: .1}) },
		"send gradients uncompressed":        func(c *trainer.Config) { compressed(c, trainer.Compression{Form: trainer.Int8}) },
		"layers.2.running_mean is a running": func(c *trainer.Config) { c.Accumulate = true },
	} {
		t.Run(name, func(t *testing.T) {
			j := job{ranks: 1, batch: 20, steps: 1, optimizer: optim.DefaultSGD(.1)}
			j.change = func(_ int, c *trainer.Config) {
				normalised(t, c)
				change(c)
			}
			require.ErrorContains(t, j.run(t)[0].err, name)
		})
	}
}

func compressed(c *trainer.Config, form trainer.Compression) {
	c.Strategy.(*trainer.AllReduce).SetCompression(form)
}
