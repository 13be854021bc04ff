package paramserver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// One worker, or a quorum of all workers, gives the bits of AllReduce, with any servers.
func TestAsyncEqualsAllReduce(t *testing.T) {
	for workers := 1; workers <= 3; workers++ {
		usual := job{workers: workers, optimizer: optim.DefaultAdam(), steps: 4, policy: &Policy{Quorum: Everyone, Bounded: true}}
		want := usual.reference(t)
		for _, servers := range []int{1, 3} {
			for _, apart := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d workers %d servers apart %v", workers, servers, apart), func(t *testing.T) {
					j := usual
					j.servers, j.apart = servers, apart
					j.equals(t, want)
				})
			}
		}
	}
}

// All workers end with the same values after the same number of updates, and each update has
// one gradient.
func TestAsyncEnds(t *testing.T) {
	const steps = 30
	for _, p := range []Policy{{}, {Bounded: true, MaxStaleness: 1}, {Bounded: true, Damp: true}} {
		for _, apart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v apart %v", p, apart), func(t *testing.T) {
				j := job{workers: 3, servers: 2, apart: apart, optimizer: optim.DefaultAdam(), steps: steps, policy: &p}
				out := j.run(t)
				for rank, got := range out {
					require.NoError(t, got.err, "rank %d", rank)
					require.Equal(t, out[0].values, got.values, "rank %d", rank)
					require.Equal(t, steps, got.result.Steps)
					require.Equal(t, out[0].stale, got.stale)
					require.Equal(t, steps, got.stale.Applied+got.stale.Damped)
				}
				require.Equal(t, steps, out[0].state.Step)
				require.Len(t, out[0].state.Slots["m"], len(out[0].values))
			})
		}
	}
}

// A run resumes from its state, with other servers, and with AllReduce.
func TestAsyncResumes(t *testing.T) {
	j := job{workers: 1, servers: 1, optimizer: optim.DefaultAdam(), steps: 6, policy: &Policy{}}
	want := j.run(t)[0]
	require.NoError(t, want.err)
	half := j
	half.steps = 3
	first := half.run(t)[0]
	require.NoError(t, first.err)
	for _, servers := range []int{0, 1, 2} {
		again := j
		again.servers, again.apart = servers, servers == 2
		again.change = func(_ int, c *trainer.Config) {
			c.From = first.state
			copy(c.Task.Params().Values.Float32s(), first.values)
		}
		got := again.run(t)[0]
		require.NoError(t, got.err)
		require.Equal(t, want.values, got.values, "%d servers", servers)
		require.Equal(t, want.state, got.state, "%d servers", servers)
	}
}

// A server makes an update without a straggler after the timeout, and drops its gradient. The
// straggler continues with the newest values.
func TestStragglerTimeout(t *testing.T) {
	const workers, updates = 3, 4
	ahead := make(chan struct{})
	strategies := make([]*Async, workers)
	errs := asyncTogether(t, workers, Policy{Quorum: Everyone, Timeout: 20 * time.Millisecond, Bounded: true}, func(ctx context.Context, s *asyncSeat) error {
		strategies[s.group.Rank()] = s.strategy
		if _, err := s.start(ctx); err != nil {
			return err
		}
		if s.group.Rank() == 2 {
			<-ahead
			before := s.strategy.Done()
			assert.Zero(t, before)
			_, err := s.step(ctx, .1)
			assert.GreaterOrEqual(t, s.strategy.Done(), updates)
			return errors.Join(err, s.strategy.Finish(ctx, s.params), s.strategy.Disconnect(ctx))
		}
		for s.strategy.Done() < updates {
			if _, err := s.step(ctx, .1); err != nil {
				return err
			}
		}
		if s.group.Rank() == 0 {
			close(ahead)
		}
		return errors.Join(s.strategy.Finish(ctx, s.params), s.strategy.Disconnect(ctx))
	})
	require.NoError(t, errors.Join(errs...))
	stale := strategies[0].Stale()
	require.Positive(t, stale.Dropped)
	late := 0
	for _, n := range stale.Histogram[updates:] {
		late += n
	}
	require.Equal(t, 1, late, "%v", stale.Histogram)
}

// A request to stop ends the training of all workers with the same values.
func TestAsyncStops(t *testing.T) {
	stop := make(chan struct{})
	j := job{workers: 3, servers: 2, optimizer: optim.DefaultAdam(), steps: 1_000_000, policy: &Policy{}}
	j.change = func(rank int, c *trainer.Config) {
		if rank == 1 {
			c.Stop, c.Observer = stop, stopper{after: 5, stop: stop}
		}
	}
	out := make([]outcome, j.workers)
	groups := local(t, j.workers, 0)
	each(groups, func(rank int) { out[rank] = j.train(t, groups[rank]) })
	for rank, o := range out {
		require.ErrorIs(t, o.err, trainer.ErrStopped)
		require.Equal(t, out[0].values, o.values, "rank %d", rank)
		require.Equal(t, out[0].result.Steps, o.result.Steps)
	}
}

// If rank 0 reaches the target, the training of all workers ends with the same values, and
// rank 0 alone knows why.
func TestAsyncTarget(t *testing.T) {
	for _, apart := range []bool{false, true} {
		j := job{workers: 3, servers: 2, apart: apart, optimizer: optim.DefaultAdam(), steps: 1_000_000, policy: &Policy{}}
		j.change = func(rank int, c *trainer.Config) {
			c.Eval = trainer.Evaluations{Every: 20, Until: trainer.Target{Metric: "loss", Value: 1}}
			if rank != 0 {
				c.Task.(*trainer.ModelTask[nn.Batch]).Test = nil
			}
		}
		out := j.run(t)
		require.NoError(t, out[0].err)
		reached := out[0].result.Reached
		require.True(t, reached.Found())
		require.LessOrEqual(t, reached.Metric.Value, 1.)
		require.Greater(t, out[0].result.Steps, reached.Step, "another update carries the request to stop")
		require.Equal(t, out[0].result.Steps, out[0].result.Final.Step, "the last values are evaluated, too")
		for _, o := range out[1:] {
			require.ErrorIs(t, o.err, trainer.ErrStopped)
			require.False(t, o.result.Reached.Found())
			require.Equal(t, out[0].values, o.values)
			require.Equal(t, out[0].result.Steps, o.result.Steps)
		}
	}
}

// A stopper closes stop after a step.
type stopper struct {
	after int
	stop  chan struct{}
}

func (s stopper) Stepped(e trainer.StepEvent) {
	select {
	case <-s.stop:
	default:
		if e.Step >= s.after {
			close(s.stop)
		}
	}
}

func (stopper) Evaluated(trainer.EvalEvent) {}

// An asyncSeat is a worker that a test steps by hand, and that is also a server.
type asyncSeat struct {
	group    *collective.Group
	params   *nn.Params
	strategy *Async
}

// asyncTogether runs work on every worker, and returns the errors by rank.
func asyncTogether(t *testing.T, workers int, p Policy, work func(ctx context.Context, s *asyncSeat) error) []error {
	groups := local(t, workers, 0)
	errs := make([]error, workers)
	each(groups, func(rank int) {
		b := cpu.New(cpu.Options{})
		defer b.Close()
		m, err := nn.NewClassifier(b, models.ReluReluSoftmax(8, 0), []int{4}, 3, uint64(rank+1))
		require.NoError(t, err)
		s := &asyncSeat{groups[rank], m.Params(), NewAsync(b, optim.DefaultAdam(), Servers{}, p)}
		errs[rank] = work(deadline(t), s)
		if errs[rank] != nil {
			groups[rank].Abort(errs[rank])
		}
		assert.NoError(t, s.strategy.Close())
	})
	return errs
}

func (s *asyncSeat) start(ctx context.Context) (trainer.Place, error) {
	return s.strategy.Start(ctx, trainer.Start{Group: s.group, Params: s.params})
}

// step takes a step in which every gradient is x.
func (s *asyncSeat) step(ctx context.Context, x float32) (trainer.Report, error) {
	for i := range s.params.Grads.Float32s() {
		s.params.Grads.Float32s()[i] = x
	}
	return s.strategy.Step(ctx, s.params, trainer.Step{Index: s.strategy.Done(), Weight: 1})
}

// A gradient that is not finite is an error on its worker, which names it, and changes no
// value.
func TestAsyncNotFinite(t *testing.T) {
	errs := asyncTogether(t, 2, Policy{}, func(ctx context.Context, s *asyncSeat) error {
		if _, err := s.start(ctx); err != nil {
			return err
		}
		if s.group.Rank() == 0 {
			return errors.Join(s.strategy.Finish(ctx, s.params))
		}
		before := append([]float32(nil), s.params.Values.Float32s()...)
		_, err := s.step(ctx, float32(math.NaN()))
		assert.Equal(t, before, s.params.Values.Float32s())
		return err
	})
	require.ErrorContains(t, errs[1], "gradient of layers.")
	require.ErrorContains(t, errs[1], "step 1 is not finite on rank 1 (")
	var lost *collective.RankError
	require.ErrorAs(t, errs[0], &lost)
	require.Equal(t, 1, lost.Rank)
}
