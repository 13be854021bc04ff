package trainer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// dies is a Transport that closes after a number of messages, as if its process had
// been killed.
type dies struct {
	collective.Transport
	after int64
	sent  atomic.Int64
}

func (d *dies) Send(ctx context.Context, to int, h *collective.Header, parts [][]byte) error {
	if d.sent.Add(1) > d.after {
		d.Close()
		return errors.New("killed")
	}
	return d.Transport.Send(ctx, to, h, parts)
}

// If a rank dies anywhere in a step, the survivors' values are those after a complete
// step: the same step on all of them, or one more.
func TestDeathInAStepLeavesWholeSteps(t *testing.T) {
	usual := job{ranks: 3, batch: 16, steps: 12, dropout: .2, optimizer: optim.DefaultAdam(), hidden: 48}
	kept := make([][]float32, 0, 13)
	whole := usual
	whole.change = func(rank int, c *trainer.Config) {
		if rank == 0 {
			p := c.Task.Params()
			c.Observer = observeSteps(func(trainer.StepEvent) { kept = append(kept, slices.Clone(p.Values.Float32s())) })
		}
	}
	whole.run(t)
	for _, bucket := range []int{0, fiveBuckets} {
		usual.bucket = bucket
		seen := map[int]bool{}
		var dying *dies
		dieAfter := func(after int64) {
			usual.connect = func(t testing.TB, n int) ([]collective.View, []collective.Transport) {
				views, transports := collective.Local(n)
				for r := range transports { // makes all of them send messages
					transports[r] = &dies{Transport: transports[r], after: math.MaxInt64}
				}
				dying = transports[1].(*dies)
				dying.after = after
				return views, transports
			}
		}
		dieAfter(math.MaxInt64)
		usual.run(t)
		all := dying.sent.Load()
		for after := all / 3; after < all*9/10; after += max(1, all/40) {
			dieAfter(after)
			out := usual.run(t)
			for r, o := range out {
				require.Error(t, o.err)
				if o.result.Steps == 0 {
					continue
				}
				require.Equal(t, kept[o.result.Steps-1], o.values, "rank %d, death after %d messages", r, after)
				require.InDelta(t, out[0].result.Steps, o.result.Steps, 1)
				seen[o.result.Steps] = true
				var lost *collective.RankError
				if r != 1 {
					require.ErrorAs(t, o.err, &lost, "%v", o.err)
					require.Equal(t, 1, lost.Rank)
				}
			}
		}
		require.Greater(t, len(seen), 1, "it died in several steps")
	}
}

// A run that is cancelled in the middle of a step leaves no call in progress.
func TestCancelInAStep(t *testing.T) {
	usual := job{ranks: 2, batch: 16, steps: 1000, optimizer: optim.DefaultSGD(.1), bucket: fiveBuckets}
	usual.change = func(rank int, c *trainer.Config) {
		task := taskOf(c)
		task.Model = &spoiled{Model: task.Model, at: 5, spoil: func(*nn.Params) error {
			if rank == 1 {
				return errors.New("cancelled by the user")
			}
			return nil
		}}
	}
	for r, o := range usual.run(t) {
		require.ErrorContains(t, o.err, "cancelled by the user", "rank %d", r)
		require.Equal(t, 5, o.result.Steps)
	}
}

// spoiled is a model that calls a function when half of the gradients of a step are
// computed: Final has been called for some of them.
type spoiled struct {
	nn.Model[nn.Batch]
	at    uint64
	spoil func(p *nn.Params) error
}

func (s *spoiled) Learn(p *nn.Pass, b nn.Batch) (nn.Buffer, int, error) {
	if p.Random.Step != s.at {
		return s.Model.Learn(p, b)
	}
	var err error
	var half bool
	pass := *p
	pass.Final = func(lo int) {
		if !half {
			half, err = true, s.spoil(s.Params())
		}
		if err == nil && p.Final != nil {
			p.Final(lo)
		} else if err != nil && p.Final != nil && lo > 0 {
			p.Final(lo) // some have left when the error comes
		}
	}
	loss, weight, bad := s.Model.Learn(&pass, b)
	return loss, weight, errors.Join(err, bad)
}

// Gradients that are not finite stop all ranks before the sum hides which rank had
// them. The values do not change.
func TestGradientThatIsNotFinite(t *testing.T) {
	for _, bucket := range []int{0, fiveBuckets} {
		for _, micro := range []int{1, 2} {
			for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				t.Run(fmt.Sprint(bucket, micro, bad), func(t *testing.T) {
					usual := job{ranks: 3, batch: 16, steps: 9, optimizer: optim.DefaultAdam(), bucket: bucket, micro: micro}
					whole := usual
					whole.steps = 5
					want := whole.run(t)
					usual.change = func(rank int, c *trainer.Config) {
						if rank == 2 {
							task := taskOf(c)
							task.Model = &spoiled{Model: task.Model, at: 5, spoil: func(p *nn.Params) error {
								q := p.Lookup("layers.1.W")
								q.Grads.Float32s()[3] = float32(bad)
								return nil
							}}
						}
					}
					for _, o := range usual.run(t) {
						var e *trainer.NotFiniteError
						require.ErrorAs(t, o.err, &e)
						require.Equal(t, []int{2}, e.Ranks)
						require.Equal(t, "layers.1.W", e.Parameter)
						require.ErrorContains(t, o.err, "the gradient of step 6 is not finite on rank 2 (local/2), first in the gradient of layers.1.W")
						require.Equal(t, want[0].values, o.values)
						require.True(t, trainer.Unanimous(o.err))
					}
				})
			}
		}
	}
}

// The gradients of each rank are finite, but their sum is not.
func TestSumThatIsNotFinite(t *testing.T) {
	usual := job{ranks: 2, batch: 16, steps: 9, optimizer: optim.DefaultAdam()}
	usual.change = func(_ int, c *trainer.Config) {
		task := taskOf(c)
		task.Model = &spoiled{Model: task.Model, at: 3, spoil: func(p *nn.Params) error {
			p.Lookup("layers.2.b").Grads.Float32s()[0] = math.MaxFloat32
			return nil
		}}
	}
	for _, o := range usual.run(t) {
		var e *trainer.NotFiniteError
		require.ErrorAs(t, o.err, &e)
		require.Equal(t, []int{0, 1}, e.Ranks)
		require.ErrorContains(t, o.err, "the summed gradient of step 4")
		require.Equal(t, "layers.2.b", e.Parameter)
		require.Equal(t, 3, o.result.Steps)
	}
}

// After a step that was abandoned halfway, no call is in progress: the strategy no longer
// uses the gradients, and the other rank gets the reason.
func TestNothingIsInFlightAfterAStep(t *testing.T) {
	why := errors.New("the batch is bad")
	for name, give := range map[string]func(ctx context.Context, cancel context.CancelCauseFunc, s *trainer.AllReduce, p *nn.Params) error{
		"abandoned": func(_ context.Context, _ context.CancelCauseFunc, s *trainer.AllReduce, _ *nn.Params) error {
			s.Abandon(why)
			return why
		},
		"cancelled": func(ctx context.Context, cancel context.CancelCauseFunc, s *trainer.AllReduce, p *nn.Params) error {
			cancel(why)
			_, err := s.Step(ctx, p, trainer.Step{Weight: 3})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			broken := make(chan struct{})
			collectivetest.Ranks(t, 2, func(ctx context.Context, g *collective.Group) {
				ctx, cancel := context.WithCancelCause(ctx)
				defer cancel(nil)
				b := cpu.New(cpu.Options{})
				defer b.Close()
				m, err := nn.NewClassifier(b, models.ReluReluSoftmax(16, 0), []int{100}, 10, 1)
				assert.NoError(t, err)
				p, s := m.Params(), trainer.NewAllReduce(b, optim.DefaultAdam())
				s.SetBucket(fiveBuckets)
				assert.NoError(t, begin(ctx, g, s, p, trainer.State{}))
				values := slices.Clone(p.Values.Float32s())
				if g.Rank() == 0 {
					defer close(broken)
					final := s.Open(ctx, p, trainer.Step{})
					final(p.Lookup("layers.1.b").Offset)
					assert.ErrorContains(t, give(ctx, cancel, s, p), why.Error())
					assert.ErrorContains(t, g.Err(), why.Error(), "a call in progress would say nothing yet")
				} else {
					<-broken // while rank 0 calls AllReduce, a Barrier is a mismatch
					err = g.Barrier(ctx)
					var lost *collective.RankError
					if assert.ErrorAs(t, err, &lost) {
						assert.Equal(t, 0, lost.Rank)
						assert.ErrorContains(t, err, why.Error())
					}
				}
				assert.Equal(t, values, p.Values.Float32s())
			})
		})
	}
}
