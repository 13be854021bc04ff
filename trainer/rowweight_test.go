package trainer_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// heavy is a model whose rows weigh 3 each: its loss is the sum over three copies of them.
type heavy struct {
	nn.Model[nn.Batch]
	says int // RowWeight
}

func (h heavy) RowWeight() int { return h.says }

func (h heavy) Learn(p *nn.Pass, b nn.Batch) (nn.Buffer, int, error) {
	quiet := *p
	quiet.Final = nil
	loss, weight, err := h.Model.Learn(&quiet, b)
	if err == nil {
		p.Backend.Scale(loss, 3)
		p.Backend.Scale(h.Params().Grads, 3)
	}
	return loss, 3 * weight, err
}

func heavyJob(reduce trainer.Reduce, says int) job {
	return job{ranks: 2, batch: 16, steps: 20, optimizer: optim.DefaultSGD(.1), change: func(_ int, c *trainer.Config) {
		c.Reduce = reduce
		t := taskOf(c)
		t.Model = heavy{t.Model, says}
	}}
}

// Gradients and losses are divided by the weight of rows, in recorded steps too.
func TestRowsOfAnyWeight(t *testing.T) {
	for _, reduce := range []trainer.Reduce{trainer.ReduceMean, trainer.ReduceSum} {
		t.Run(fmt.Sprint(reduce), func(t *testing.T) {
			light := heavyJob(reduce, 3)
			light.change = func(_ int, c *trainer.Config) { c.Reduce = reduce }
			want, plain := light.run(t), heavyJob(reduce, 3).run(t)
			for r, o := range heavyJob(reduce, 3).recorded(4, false).run(t) {
				require.NoError(t, o.err)
				require.Equal(t, plain[r].values, o.values)
				for i, e := range plain[r].steps {
					require.Equal(t, 3*want[r].steps[i].Weight, e.Weight)
					require.InDelta(t, want[r].steps[i].Loss, e.Loss, 1e-4)
					require.Equal(t, []any{e.Weight, e.Loss}, []any{o.steps[i].Weight, o.steps[i].Loss})
				}
			}
		})
	}
}

// A model that weighs rows otherwise than it says would change the sums of all ranks.
func TestRecordedWeightsMustBeEqual(t *testing.T) {
	for _, o := range heavyJob(trainer.ReduceMean, 1).recorded(1, false).run(t) {
		require.ErrorContains(t, o.err, "the weight of a batch of 16 rows is 48, not 16; recorded steps need a model that gives every row the same weight")
	}
}
