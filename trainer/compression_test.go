package trainer_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// lossy has every compression except none.
var lossy = []string{"bf16", "fp16", "int8", "topk:0.05"}

func compression(t testing.TB, text string) trainer.Compression {
	c, err := trainer.ParseCompression(text)
	require.NoError(t, err)
	return c
}

// compressed returns the job with a compression.
func (j job) compressed(t testing.TB, how string) job {
	change := j.change
	c := compression(t, how)
	j.change = func(rank int, conf *trainer.Config) {
		if change != nil {
			change(rank, conf)
		}
		conf.Strategy.(*trainer.AllReduce).SetCompression(c)
	}
	return j
}

func TestParseCompression(t *testing.T) {
	for _, text := range append(lossy, "none", "topk:1", "topk:0.001") {
		require.Equal(t, text, compression(t, text).String())
	}
	require.Equal(t, "none", trainer.Compression{}.String())
	for _, text := range []string{"", "foo", "topk", "topk:", "topk:0", "topk:-1", "topk:2", "topk:NaN", "topk:x", "INT8"} {
		_, err := trainer.ParseCompression(text)
		require.Error(t, err, text)
	}
}

// A Compression that no text describes is refused before training.
func TestCompressionCheck(t *testing.T) {
	for _, text := range append(lossy, "none", "topk:1") {
		require.NoError(t, compression(t, text).Check())
	}
	for says, c := range map[string]trainer.Compression{
		"no compression of form 77": {Form: 77},
		"topk:0: the share":         {Form: trainer.TopK},
		"topk:2: the share":         {Form: trainer.TopK, Keep: 2},
		"topk:NaN: the share":       {Form: trainer.TopK, Keep: math.NaN()},
	} {
		require.ErrorContains(t, c.Check(), says)
		j := job{ranks: 1, batch: 4, steps: 1, optimizer: optim.DefaultAdam(), hidden: 4}
		j.change = func(_ int, conf *trainer.Config) { conf.Strategy.(*trainer.AllReduce).SetCompression(c) }
		require.ErrorContains(t, j.run(t)[0].err, says)
	}
}

// Ranks compare what decides how gradients travel and what becomes of them.
func TestStrategyIsCompared(t *testing.T) {
	for says, change := range map[string]func(rank int, conf *trainer.Config){
		"the compression is": func(rank int, conf *trainer.Config) {
			if rank == 1 {
				conf.Strategy.(*trainer.AllReduce).SetCompression(compression(t, "int8"))
			}
		},
		"the optimizer is": func(rank int, conf *trainer.Config) {
			if rank == 1 {
				conf.Strategy = trainer.NewAllReduce(conf.Backend, optim.DefaultSGD(.1))
			}
		},
	} {
		for _, o := range (job{ranks: 2, batch: 4, steps: 1, optimizer: optim.DefaultAdam(), change: change}).run(t) {
			var differ *trainer.SettingsError
			require.ErrorAs(t, o.err, &differ)
			require.ErrorContains(t, o.err, says)
		}
	}
}

// All ranks hold the same bits, in every run, over every transport and with any number
// of buckets. Top-k chooses elements in each bucket, so its number of buckets stays the
// same.
func TestCompressedBits(t *testing.T) {
	for _, how := range lossy {
		t.Run(how, func(t *testing.T) {
			usual := job{ranks: 3, batch: 16, steps: 30, dropout: .2, optimizer: optim.DefaultAdam(), hidden: 48, bucket: fiveBuckets}.compressed(t, how)
			want := usual.run(t)
			exact := job{ranks: 3, batch: 16, steps: 30, dropout: .2, optimizer: optim.DefaultAdam(), hidden: 48}.run(t)
			require.NotEqual(t, exact[0].values, want[0].values)
			again := usual
			again.connect = overTCP
			if how[0] != 't' {
				again.bucket = 0
			}
			got := again.run(t)
			for r := range want {
				require.NoError(t, want[r].err)
				require.NoError(t, got[r].err)
				require.Equal(t, want[0].values, want[r].values)
				require.Equal(t, want[0].values, got[r].values)
				require.Equal(t, 5, want[r].steps[3].Buckets)
			}
			e := want[0].steps[3]
			require.Less(t, e.Sent, e.Plain)
			require.Equal(t, 30*e.Sent, want[0].result.Sent)
			require.Equal(t, 30*e.Plain, want[0].result.Plain)
		})
	}
}

// Three ranks sum 1.4 MB. Each sends 4/3 of a vector of float32 or of 16 bits. Gathered
// forms are sent to the two others.
func TestCompressedBytes(t *testing.T) {
	for how, ratio := range map[string]float64{"none": 1, "bf16": 2, "fp16": 2, "int8": 4. / 3 / 2 * 4 / (1 + 4./256), "topk:0.01": 4. / 3 / 2 * 4 / (.01 * 8)} {
		out := job{ranks: 3, batch: 8, steps: 2, optimizer: optim.DefaultSGD(.1), hidden: 512}.compressed(t, how).run(t)
		require.NoError(t, out[1].err)
		e := out[1].steps[1]
		require.Equal(t, 2, e.Buckets)
		require.InEpsilon(t, 4./3*float64(e.Bytes), e.Plain, 1e-6)
		require.InEpsilon(t, ratio, float64(e.Plain)/float64(e.Sent), .01, how)
	}
}

// With ReduceSum, and with gradients that are never zeroed, all gradients leave at once.
func TestCompressedUndivided(t *testing.T) {
	for _, how := range lossy {
		for _, change := range []func(int, *trainer.Config){
			func(_ int, c *trainer.Config) { c.Reduce = trainer.ReduceSum },
			func(_ int, c *trainer.Config) { c.Accumulate = true },
		} {
			out := job{ranks: 2, micro: 2, batch: 8, steps: 12, optimizer: optim.DefaultSGD(.01), bucket: fiveBuckets, change: change}.compressed(t, how).run(t)
			for _, o := range out {
				require.NoError(t, o.err)
				require.Equal(t, out[0].values, o.values)
				require.False(t, math.IsNaN(o.result.Loss))
			}
		}
	}
}

// A single rank compresses too, although it sends nothing.
func TestCompressedAlone(t *testing.T) {
	for _, how := range lossy {
		usual := job{ranks: 1, batch: 16, steps: 20, optimizer: optim.DefaultSGD(.1)}
		exact, got := usual.run(t)[0], usual.compressed(t, how).run(t)[0]
		require.NoError(t, got.err)
		require.NotEqual(t, exact.values, got.values)
		require.Zero(t, got.result.Sent)
	}
}

// A run with compression resumes from any snapshot with the same bits: each rank's
// residual is saved by rank 0. With another number of ranks, residuals start at
// zero.
func TestCompressedResumeIsExact(t *testing.T) {
	for _, how := range lossy {
		t.Run(how, func(t *testing.T) {
			usual := job{ranks: 3, batch: 16, steps: 24, dropout: .2, optimizer: optim.DefaultAdam(), bucket: fiveBuckets}.compressed(t, how)
			kept := new(memorySaver)
			whole := usual.saves(kept).run(t)
			require.NoError(t, whole[0].err)
			state := kept.saved[14].State
			require.Len(t, state.Residuals, 3)
			require.NotEqual(t, state.Residuals[0], state.Residuals[1])
			again := new(memorySaver)
			for _, o := range usual.saves(again).from(kept, 14).run(t) {
				require.NoError(t, o.err)
				require.Equal(t, whole[0].values, o.values)
			}
			require.Equal(t, kept.saved[24].State, again.saved[24].State)

			without := kept.saved[14]
			without.State.Residuals = nil
			kept.saved[14] = without
			require.NotEqual(t, whole[0].values, usual.from(kept, 14).run(t)[0].values, "residuals matter")
			kept.saved[14] = trainer.Snapshot{State: state}
			fewer := usual
			fewer.ranks = 2
			out := fewer.from(kept, 14).run(t)
			require.NoError(t, out[0].err)
			require.Equal(t, out[0].values, out[1].values)
		})
	}
}

// A rank whose gradient is not finite is named, with every compression.
func TestCompressedNotFinite(t *testing.T) {
	for _, how := range lossy {
		for _, bucket := range []int{0, fiveBuckets} {
			usual := job{ranks: 2, batch: 16, steps: 20, optimizer: optim.DefaultSGD(.1), bucket: bucket}
			usual.change = func(rank int, c *trainer.Config) {
				if rank == 1 {
					task := taskOf(c)
					task.Model = spoiling{task.Model, 7}
				}
			}
			for _, o := range usual.compressed(t, how).run(t) {
				var e *trainer.NotFiniteError
				require.ErrorAs(t, o.err, &e)
				require.Equal(t, []int{1}, e.Ranks)
				require.Equal(t, 8, e.Step)
				require.Equal(t, "layers.0.W", e.Parameter)
			}
		}
	}
}

// spoiling is a model whose gradient is infinite at a step.
type spoiling struct {
	nn.Model[nn.Batch]
	step int
}

func (m spoiling) Learn(p *nn.Pass, b nn.Batch) (nn.Buffer, int, error) {
	inner := *p
	inner.Final = nil
	loss, weight, err := m.Model.Learn(&inner, b)
	if int(p.Random.Step) == m.step {
		m.Params().Lookup("layers.0.W").Grads.Float32s()[5] = float32(math.Inf(-1))
	}
	return loss, weight, err
}

// recorder is an optimizer that sums the gradients that it receives.
type recorder struct{ sum []float64 }

func (*recorder) Slots() []string { return nil }

func (o *recorder) Update(_ nn.Backend, p *nn.Params, _ *optim.State, _ optim.Part) {
	for i, g := range p.Grads.Float32s() {
		o.sum[i] += float64(g)
	}
}

// What was sent in all steps plus the residuals equals the sum of all gradients, except
// for the last rounding of sums in 16 bits.
func TestErrorFeedbackAddsUp(t *testing.T) {
	const steps, n = 60, 5000
	for _, c := range []struct {
		how       string
		ranks     int
		tolerance float64 // per step and rank
	}{
		{"bf16", 1, 1e-6}, {"fp16", 1, 1e-6}, {"int8", 1, 1e-6}, {"topk:0.01", 1, 1e-6},
		{"bf16", 3, 2e-3}, {"fp16", 3, 3e-4}, {"int8", 3, 1e-6}, {"topk:0.01", 3, 1e-6},
	} {
		how, ranks, tolerance := c.how, c.ranks, c.tolerance
		t.Run(fmt.Sprintf("%s of %d", how, ranks), func(t *testing.T) {
			views, transports := collective.Local(ranks)
			gradient := func(rank, step, i int) float32 {
				return float32(math.Sin(float64(rank+1)*float64(i+7*step)) + .01*float64(rank))
			}
			states, records := make([]trainer.State, ranks), make([]recorder, ranks)
			var all sync.WaitGroup
			for r := range ranks {
				all.Go(func() {
					ctx := context.Background()
					g := collective.NewGroup(views[r], collective.OverTransport(views[r], transports[r]), collective.Options{})
					defer g.Close()
					b := cpu.New(cpu.Options{})
					defer b.Close()
					build := nn.NewBuilder(0)
					build.Param("w", []int{n}, nn.Zeros)
					p, err := build.Build(b)
					if !assert.NoError(t, err) {
						return
					}
					records[r].sum = make([]float64, p.Grads.Len())
					s := trainer.NewAllReduce(b, &records[r])
					s.SetCompression(compression(t, how))
					assert.NoError(t, begin(ctx, g, s, p, trainer.State{}))
					for step := range steps {
						for i := range n {
							p.Grads.Float32s()[i] = gradient(r, step, i)
						}
						_, err := s.Step(ctx, p, trainer.Step{Index: step, Weight: 1, Undivided: true})
						assert.NoError(t, err)
					}
					states[r], err = s.State(ctx, r == 0)
					assert.NoError(t, err)
					assert.NoError(t, g.Barrier(ctx))
				})
			}
			all.Wait()
			require.Len(t, states[0].Residuals, ranks)
			for i := range n {
				want, got := 0., records[0].sum[i]
				for r := range ranks {
					got += float64(states[0].Residuals[r][i])
					for step := range steps {
						want += float64(gradient(r, step, i))
					}
				}
				require.InDelta(t, want, got, tolerance*float64(ranks*steps), "element %d", i)
			}
		})
	}
}
