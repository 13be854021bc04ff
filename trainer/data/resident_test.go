package data_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// The batches that a Resident gathers equal those of a Feed, from any step on, across
// ends of epochs, and for ranks with fewer rows there.
func TestResidentEqualsFeed(t *testing.T) {
	train, _ := data.Generate(data.DigitsOptions{Train: 29, Test: 1, Side: 7})
	b := cpu.New(cpu.Options{})
	defer b.Close()
	for _, ranks := range []int{1, 3} {
		for rank := range ranks {
			samplers := [2]*data.Sampler{}
			for i := range samplers {
				var err error
				samplers[i], err = data.NewSampler(29, 4, rank, ranks, 9)
				require.NoError(t, err)
			}
			feed, resident := data.NewFeed(train.Stage(4, b), samplers[0]), train.Resident(4, samplers[1], b)
			loss := b.Alloc(1)
			for _, begin := range []int{0, 2, 11} {
				pace := b.NewPace(nn.PaceConfig{Hyper: func(int) (h [nn.HyperLen]float32) { return h }})
				for step, placed := begin, begin; step < 30; step++ {
					if step == placed {
						first, steps := resident.Seek(step)
						require.Positive(t, steps)
						pace.Seek(step, first)
						placed = step + steps
					}
					want, err := feed.Batch(step)
					require.NoError(t, err)
					mine, all := resident.Rows(step)
					_, wantAll := samplers[0].Step(step)
					require.Equal(t, []int{want.Rows(), wantAll}, []int{mine, all}, "step %d", step)
					got := resident.Gather(pace, mine)
					require.Equal(t, want.X.Shape, got.X.Shape)
					require.Equal(t, want.X.Data.Float32s(), got.X.Data.Float32s(), "rank %d of %d, step %d", rank, ranks, step)
					require.Equal(t, want.Labels.Int32s(), got.Labels.Int32s())
					pace.Tick(loss, mine)
				}
			}
		}
	}
}
