package trainer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// BenchmarkStep is a whole step of two ranks of batch 128,
// by the width of the model and by how gradients leave. exchange-% is the share
// of the step that rank 0 waits for after its backward pass.
func BenchmarkStep(b *testing.B) {
	for _, hidden := range []int{128, 1024} {
		for over, connect := range map[string]maker{"inproc": inproc, "tcp": overTCP} {
			for name, bucket := range map[string]int{"one": 1 << 30, "usual": trainer.DefaultBucket, "each": 1} {
				b.Run(fmt.Sprintf("hidden=%d/over=%s/buckets=%s", hidden, over, name), func(b *testing.B) {
					benchmarkStep(b, hidden, bucket, connect)
				})
			}
		}
	}
}

func benchmarkStep(b *testing.B, hidden, bucket int, connect maker) {
	const ranks, batch = 2, 128
	views, transports := connect(b, ranks)
	var exchange, elapsed time.Duration
	var all sync.WaitGroup
	for r := range ranks {
		all.Go(func() {
			g := collective.NewGroup(views[r], collective.OverTransport(views[r], transports[r]), collective.Options{})
			defer g.Close()
			be := cpu.New(cpu.Options{})
			defer be.Close()
			set := digits()
			m, err := nn.NewClassifier(be, models.ReluReluSoftmax(hidden, .2), []int{set.Train.Features()}, 10, 1)
			assert.NoError(b, err)
			sampler, err := data.NewSampler(set.Train.Rows, batch, r, ranks, 1)
			assert.NoError(b, err)
			s := trainer.NewAllReduce(be, optim.DefaultAdam())
			s.SetBucket(bucket)
			c := trainer.Config{Groups: trainer.Only(g), Backend: be, Strategy: s,
				Task: trainer.NewTask(m, data.NewFeed(set.Train.Stage(batch, be), sampler), nil), Steps: b.N + 1}
			if r == 0 {
				c.Observer = observeSteps(func(e trainer.StepEvent) {
					if e.Step == 1 {
						b.ResetTimer()
						elapsed = -e.Elapsed
						return
					}
					exchange += e.Exchange
					if e.Step == b.N+1 {
						elapsed += e.Elapsed
						b.StopTimer()
					}
				})
			}
			_, err = trainer.Train(context.Background(), c)
			assert.NoError(b, err)
			assert.NoError(b, g.Barrier(context.Background()))
		})
	}
	all.Wait()
	b.ReportMetric(100*float64(exchange)/float64(max(elapsed, 1)), "exchange-%")
}
