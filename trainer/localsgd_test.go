package trainer_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// inRounds returns the job with LocalSGD.
func (j job) inRounds(r trainer.Rounds, c trainer.Compression) job {
	change := j.change
	j.change = func(rank int, config *trainer.Config) {
		s := trainer.NewLocalSGD(config.Backend, j.optimizer, r)
		s.SetCompression(c)
		config.Strategy = s
		if change != nil {
			change(rank, config)
		}
	}
	return j
}

var noCompression trainer.Compression

// plainSGD is an optimizer that is easy to repeat in float64.
var plainSGD = optim.SGD{LearnRate: optim.Constant(.5)}

// Outer steps follow PyTorch's formula for SGD with Nesterov's momentum, on the mean of how
// far the ranks have moved.
func TestOuterSteps(t *testing.T) {
	const ranks, steps, rounds = 2, 2, 3
	settings := trainer.Rounds{Steps: steps, Rate: .7, Momentum: .9}
	gradient := func(rank, step int) float32 { return float32(rank+1) * float32(step%3-1) / 4 }
	collectivetest.Ranks(t, ranks, func(ctx context.Context, g *collective.Group) {
		b := cpu.New(cpu.Options{})
		defer b.Close()
		builder := nn.NewBuilder(1)
		builder.Param("w", []int{1}, nn.Uniform(8, 8))
		p, err := builder.Build(b)
		require.NoError(t, err)
		s := trainer.NewLocalSGD(b, plainSGD, settings)
		require.NoError(t, begin(ctx, g, s, p, trainer.State{}))
		shared, momentum := 8., 0.
		for step := range steps * rounds {
			p.Grads.Float32s()[0] = 2 * gradient(g.Rank(), step)
			_, err := s.Step(ctx, p, trainer.Step{Index: step, Weight: 2})
			require.NoError(t, err)
			if (step+1)%steps != 0 {
				continue
			}
			outer := 0.
			for rank := range ranks {
				for k := step - steps + 1; k <= step; k++ {
					outer += .5 * float64(gradient(rank, k)) / ranks
				}
			}
			momentum = .9*momentum + outer
			shared -= .7 * (outer + .9*momentum)
			require.InDelta(t, shared, p.Values.Float32s()[0], 1e-5, "step %d", step)
		}
		require.NoError(t, s.Close())
	})
}

// One rank that averages takes the steps of its optimizer.
func TestAveragingAlone(t *testing.T) {
	usual := job{ranks: 1, batch: 16, steps: 25, dropout: .2, optimizer: optim.DefaultAdam()}
	want, got := usual.run(t)[0], usual.inRounds(trainer.Averaging(4), noCompression).run(t)[0]
	require.NoError(t, got.err)
	for i := range want.values {
		require.InDelta(t, want.values[i], got.values[i], 1e-4)
	}
}

// traffic is an Observer that also notes the bytes sent up to each step.
type traffic struct {
	trainer.Observer
	group *collective.Group
	bytes *[]int64
}

func (o traffic) Stepped(e trainer.StepEvent) {
	o.Observer.Stepped(e)
	*o.bytes = append(*o.bytes, o.group.Traffic().Bytes())
}

// Ranks communicate only at the end of a round, and evaluate only then.
func TestRoundsAreSilent(t *testing.T) {
	usual := job{ranks: 3, batch: 8, steps: 25, optimizer: plainSGD} // an epoch has 25 steps
	var messages [3][]int64
	usual.change = func(rank int, c *trainer.Config) {
		c.Observer = traffic{c.Observer, groupOf(c), &messages[rank]}
	}
	out := usual.inRounds(trainer.DiLoCo(10), noCompression).run(t)
	plain := usual.run(t)
	for rank, o := range out {
		require.NoError(t, o.err)
		require.Equal(t, out[0].values, o.values)
		for i, e := range o.steps {
			ends := slices.Contains([]int{10, 20, 25}, e.Step)
			require.Equal(t, ends, e.Sent > 0, "step %d", e.Step)
			rows := 8
			if ends {
				rows = 3 * 80
			}
			if e.Step == 25 {
				rows = 3 * 40
			}
			require.Equal(t, rows, e.Weight, "step %d", e.Step)
			if i > 0 && !ends && e.Step != 11 && e.Step != 21 { // evaluations come after the observer
				require.Equal(t, messages[rank][i-1], messages[rank][i], "step %d of rank %d", e.Step, rank)
			}
		}
		require.Len(t, o.evals, 3)
		require.Equal(t, []int{10, 20, 25}, []int{o.evals[0].Step, o.evals[1].Step, o.evals[2].Step})
		require.Equal(t, plain[0].result.Samples, o.result.Samples)
		require.Equal(t, 3*plain[rank].result.Sent/25, o.result.Sent)
	}
}

// A run that resumes from any snapshot, also within a round, ends with the bits of one
// that was not interrupted.
func TestRoundsResumeExactly(t *testing.T) {
	int8, err := trainer.ParseCompression("int8")
	require.NoError(t, err)
	for name, usual := range map[string]job{
		"DiLoCo":     job{ranks: 3, batch: 16, steps: 40, dropout: .2, optimizer: optim.DefaultAdam()}.inRounds(trainer.DiLoCo(10), noCompression),
		"compressed": job{ranks: 2, batch: 16, steps: 40, optimizer: optim.DefaultAdam()}.inRounds(trainer.DiLoCo(10), int8),
		"averaging":  job{ranks: 2, batch: 16, steps: 40, optimizer: plainSGD}.inRounds(trainer.Averaging(14), noCompression),
		"alone":      job{ranks: 1, batch: 16, steps: 40, optimizer: optim.DefaultAdam()}.inRounds(trainer.DiLoCo(10), noCompression),
	} {
		t.Run(name, func(t *testing.T) {
			kept := new(memorySaver)
			whole := usual.saves(kept).run(t)
			require.NoError(t, whole[0].err)
			for _, step := range []int{7, 14, 28, 35} {
				again := new(memorySaver)
				for r, o := range usual.saves(again).from(kept, step).run(t) {
					require.NoError(t, o.err)
					require.Equal(t, whole[r].values, o.values, "rank %d from step %d", r, step)
					require.Equal(t, counted(whole[r].evals[len(whole[r].evals)-len(o.evals):]), counted(o.evals))
				}
				require.Equal(t, kept.saved[40].State, again.saved[40].State, "from step %d", step)
			}
		})
	}
}

// counted returns the steps and the counts of evaluations.
func counted(evals []trainer.EvalEvent) []trainer.EvalEvent {
	evals = slices.Clone(evals)
	for i, e := range evals {
		evals[i] = trainer.EvalEvent{Step: e.Step, Counts: e.Counts}
	}
	return evals
}

// With another number of ranks, a round that a snapshot interrupts ends with the mean of the
// ranks' values, which all ranks begin with.
func TestRoundsResumeWithOtherRanks(t *testing.T) {
	rounds := trainer.DiLoCo(10)
	usual := job{ranks: 3, batch: 16, steps: 40, optimizer: optim.DefaultAdam()}
	kept := new(memorySaver)
	require.NoError(t, usual.inRounds(rounds, noCompression).saves(kept).run(t)[0].err)
	from := kept.saved[14].State
	for ranks := range 5 {
		if ranks == 0 || ranks == usual.ranks {
			continue
		}
		collectivetest.Ranks(t, ranks, func(ctx context.Context, g *collective.Group) {
			b := cpu.New(cpu.Options{})
			defer b.Close()
			m, err := nn.NewClassifier(b, models.ReluReluSoftmax(16, 0), []int{144}, 10, 1)
			require.NoError(t, err)
			p := m.Params()
			copy(p.Values.Float32s(), kept.values[14])
			s := trainer.NewLocalSGD(b, optim.DefaultAdam(), rounds)
			require.NoError(t, begin(ctx, g, s, p, from))
			for i, got := range p.Values.Float32s() {
				mean := (kept.values[14][i] + from.Slots["values.1"][i] + from.Slots["values.2"][i]) / 3
				require.InDelta(t, mean, got, 1e-6)
			}
			state, err := s.State(ctx, true)
			require.NoError(t, err)
			require.NotContains(t, state.Slots, "shared", "a new round begins")
			if g.Rank() == 0 {
				require.Equal(t, from.Slots["outer"], state.Slots["outer"])
				require.Equal(t, from.Slots["m"], state.Slots["m"])
				if ranks == 4 {
					require.Equal(t, from.Slots["m.2"], state.Slots["m.2"])
					require.Equal(t, from.Slots["m"], state.Slots["m.3"])
				}
			}
			require.NoError(t, s.Close())
		})
	}
}

// Strategies can change at a snapshot.
func TestRoundsResumeFromAllReduce(t *testing.T) {
	usual := job{ranks: 2, batch: 16, steps: 40, optimizer: optim.DefaultAdam()}
	local := usual.inRounds(trainer.DiLoCo(10), noCompression)
	for name, change := range map[string][2]job{"to": {usual, local}, "from": {local, usual}} {
		kept := new(memorySaver)
		require.NoError(t, change[0].saves(kept).run(t)[0].err)
		out := change[1].from(kept, 35).run(t)
		for _, o := range out {
			require.NoError(t, o.err, name)
			require.Equal(t, out[0].values, o.values, name)
			require.Equal(t, 40, o.result.Steps)
		}
	}
}

// Outer steps take the mean of running statistics. Momentum could make a variance negative.
func TestRoundsAverageStatistics(t *testing.T) {
	usual := job{ranks: 2, batch: 16, steps: 40, optimizer: optim.DefaultAdam()}
	var tasks [2]trainer.Task
	usual.change = func(rank int, c *trainer.Config) {
		normalised(t, c)
		tasks[rank] = c.Task
	}
	for _, o := range usual.inRounds(trainer.DiLoCo(5), noCompression).run(t) {
		require.NoError(t, o.err)
	}
	for _, x := range tasks[0].Params().Lookup("layers.2.running_var").Values.Float32s() {
		require.Greater(t, x, float32(0))
		require.Less(t, x, float32(1))
	}
}

// A loss that is not finite is reported at the end of the round, by all ranks.
func TestRoundsNotFinite(t *testing.T) {
	usual := job{ranks: 2, batch: 16, steps: 40, optimizer: plainSGD}
	usual.change = func(rank int, c *trainer.Config) {
		if rank == 1 {
			c.Task.Params().Values.Float32s()[0] = 0
			c.Observer = observeSteps(func(e trainer.StepEvent) {
				if e.Step == 3 {
					c.Task.Params().Values.Float32s()[0] = float32(math.NaN())
				}
			})
		}
	}
	for _, o := range usual.inRounds(trainer.DiLoCo(10), noCompression).run(t) {
		var bad *trainer.NotFiniteError
		require.ErrorAs(t, o.err, &bad)
		require.Equal(t, []int{1}, bad.Ranks)
		require.Equal(t, 10, bad.Step)
	}
}

// Ranks with other rounds get an error that names both.
func TestRoundsAreCompared(t *testing.T) {
	usual := job{ranks: 2, batch: 16, steps: 40, optimizer: plainSGD}
	usual.change = func(rank int, c *trainer.Config) {
		switch rank {
		case 0:
			c.Strategy = trainer.NewLocalSGD(c.Backend, plainSGD, trainer.DiLoCo(10))
		case 1:
			c.Strategy = trainer.NewLocalSGD(c.Backend, plainSGD, trainer.DiLoCo(20))
		}
	}
	for _, o := range usual.run(t) {
		require.ErrorContains(t, o.err, "the strategy is rounds of")
	}
	usual.change = func(rank int, c *trainer.Config) {
		if rank == 1 {
			c.Strategy = trainer.NewLocalSGD(c.Backend, plainSGD, trainer.DiLoCo(20))
		}
	}
	require.ErrorContains(t, usual.run(t)[0].err, "the strategy is allreduce here and rounds of 20 inner steps, outer rate 1, outer momentum 0.8 on rank 1")
}

func TestRoundsCheck(t *testing.T) {
	require.NoError(t, trainer.DiLoCo(1).Check())
	require.NoError(t, trainer.Averaging(500).Check())
	for want, r := range map[string]trainer.Rounds{
		"the inner steps of a round must be at least 1, not 0":            {Rate: 1},
		"the outer rate must be more than 0 and at most 10, not 0":        {Steps: 1},
		"the outer rate must be more than 0 and at most 10, not NaN":      {Steps: 1, Rate: math.NaN()},
		"the outer momentum must be at least 0 and less than 1, not 1":    {Steps: 1, Rate: 1, Momentum: 1},
		"the outer momentum must be at least 0 and less than 1, not -0.5": {Steps: 1, Rate: 1, Momentum: -.5},
	} {
		require.EqualError(t, r.Check(), want)
		usual := job{ranks: 1, batch: 16, steps: 4, optimizer: plainSGD}
		require.ErrorContains(t, usual.inRounds(r, noCompression).run(t)[0].err, want)
	}
}

func TestIsRoundSlot(t *testing.T) {
	inner := []string{"m", "v"}
	for name, want := range map[string]bool{
		"outer": true, "shared": true, "values.1": true, "m.1": true, "v.12": true,
		"m": false, "values": false, "outer.1": false, "m.0": false, "m.01": false, "m.x": false, "m.": false, "average.1": false, "": false,
	} {
		require.Equal(t, want, trainer.IsRoundSlot(name, inner), name)
	}
}

// A rank learns within a round that another has failed.
func TestRoundsNoticeFailures(t *testing.T) {
	usual := job{ranks: 2, batch: 16, steps: 10000, optimizer: plainSGD}
	failed := make(chan struct{})
	usual.change = func(rank int, c *trainer.Config) {
		g := groupOf(c)
		if rank == 1 {
			c.Observer = observeSteps(func(e trainer.StepEvent) {
				if e.Step == 3 {
					g.Abort(context.DeadlineExceeded)
					close(failed)
				}
			})
			return
		}
		inner := c.Observer
		c.Observer = observeSteps(func(e trainer.StepEvent) {
			inner.Stepped(e)
			if e.Step == 5 {
				<-failed
			}
		})
	}
	out := usual.inRounds(trainer.DiLoCo(10000), noCompression).run(t)
	var lost *collective.RankError
	require.ErrorAs(t, out[0].err, &lost)
	require.Equal(t, 1, lost.Rank)
	require.ErrorContains(t, out[0].err, "rank 1 (local/1) failed in epoch 1")
	require.Less(t, len(out[0].steps), 100)
}
