package trainer_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// A solo strategy never waits for another rank, like a worker of an asynchronous
// parameter server.
type solo struct {
	b     nn.Backend
	view  collective.View // if there is no group
	state *optim.State
	calls []string
	stop  int // step after which it stops
}

func (s *solo) Start(_ context.Context, start trainer.Start) (trainer.Place, error) {
	s.state = optim.NewState(s.b, start.Params, optim.DefaultSGD(.1))
	s.calls = append(s.calls, "start")
	if start.Group != nil {
		s.view = start.Group.View()
	}
	return trainer.Place{View: s.view}, nil
}

func (s *solo) Step(_ context.Context, p *nn.Params, step trainer.Step) (trainer.Report, error) {
	if step.Weight == 0 {
		s.state.Step++
		return trainer.Report{Stop: step.Stop}, nil
	}
	s.b.Scale(p.Grads, 1/float32(step.Weight))
	optim.Step(optim.DefaultSGD(.1), s.b, p, s.state)
	return trainer.Report{Weight: step.Weight, Loss: step.Loss / float64(step.Weight), Stop: step.Stop || step.Index+1 == s.stop}, nil
}

func (s *solo) Total(_ context.Context, own nn.Counts) (nn.Counts, error) {
	s.calls = append(s.calls, "total")
	return own, nil
}

func (s *solo) Finish(context.Context, *nn.Params) error {
	s.calls = append(s.calls, "finish")
	return nil
}

func (s *solo) State(_ context.Context, wanted bool) (trainer.State, error) {
	return trainer.State{Step: s.state.Step}, nil
}

func (s *solo) Close() error { return nil }

// Train itself communicates with no other rank: with a strategy that does not
// either, one rank of three trains without a group, takes its own third of the
// rows and stops when the strategy says so.
func TestTrainHoldsNoGroup(t *testing.T) {
	views, _ := collective.Local(3)
	b := cpu.New(cpu.Options{})
	defer b.Close()
	set := digits()
	m, err := nn.NewClassifier(b, models.ReluReluSoftmax(16, .1), []int{set.Train.Features()}, 10, 1)
	require.NoError(t, err)
	sampler, err := data.NewSampler(set.Train.Rows, 20, 1, 3, 1)
	require.NoError(t, err)
	s := &solo{b: b, view: views[1], stop: 25}
	result, err := trainer.Train(t.Context(), trainer.Config{
		Groups: trainer.Only(nil), Backend: b, Strategy: s, Steps: 1000, Eval: trainer.Evaluations{Every: 10},
		Task: trainer.NewTask(m, data.NewFeed(set.Train.Stage(20, b), sampler), data.NewPart(set.Test.Stage(64, b), set.Test.Rows, 1, 3, 64)),
	})
	require.ErrorIs(t, err, trainer.ErrStopped)
	require.Equal(t, 25, result.Steps)
	require.Equal(t, 25*20, result.Samples)
	require.Equal(t, float64(50), result.Final.Counts[nn.CountRows])
	require.Equal(t, []string{"start", "total", "total", "finish"}, s.calls)
}

// A group that cannot be had ends Train before anything else.
func TestTrainWithoutAGroup(t *testing.T) {
	why := errors.New("no majority")
	be := cpu.New(cpu.Options{})
	c := trainer.Config{Groups: noGroup{why}, Backend: be, Strategy: trainer.NewAllReduce(be, optim.DefaultSGD(.1)), Task: trainer.NewTask[nn.Batch](nil, nil, nil)}
	_, err := trainer.Train(t.Context(), c)
	require.ErrorIs(t, err, why)
	for want, drop := range map[string]func(*trainer.Config){
		"Config.Task is nil": func(c *trainer.Config) { c.Task = nil }, "Config.Groups is nil": func(c *trainer.Config) { c.Groups = nil },
		"Config.Backend is nil": func(c *trainer.Config) { c.Backend = nil }, "Config.Strategy is nil": func(c *trainer.Config) { c.Strategy = nil },
		"Config.Steps must be at least 0, not -1":                   func(c *trainer.Config) { c.Steps = -1 },
		"Config.Eval.Every must be at least 0, not -2":              func(c *trainer.Config) { c.Eval.Every = -2 },
		"Config.SaveEvery must be at least 0, not -3":               func(c *trainer.Config) { c.SaveEvery = -3 },
		"Config.Reduce must be one of the constants, not Reduce(9)": func(c *trainer.Config) { c.Reduce = 9 },
	} {
		less := c
		drop(&less)
		_, err := trainer.Train(t.Context(), less)
		require.ErrorContains(t, err, want)
	}
}

// What a strategy cannot work with is an error before anything is sent.
func TestStrategiesRefuse(t *testing.T) {
	b := cpu.New(cpu.Options{})
	defer b.Close()
	m, err := nn.NewClassifier(b, &nn.Softmax{}, []int{3}, 2, 1)
	require.NoError(t, err)
	g := collectivetest.Local(t, 1)[0]
	unknown, good := trainer.NewAllReduce(b, optim.DefaultAdam()), trainer.NewAllReduce(b, optim.DefaultAdam())
	unknown.SetSparse(9)
	for want, s := range map[string]trainer.Strategy{
		"the optimizer of the strategy is nil":                  trainer.NewAllReduce(b, nil),
		"parameters with: the optimizer of the strategy is nil": trainer.NewLocalSGD(b, nil, trainer.Averaging(2)),
		"must be one of the constants, not Sparse(9)":           unknown,
		"a Switching needs at least one Choice":                 trainer.NewSwitching(),
		`two strategies to switch between are called "a"`:       trainer.NewSwitching(trainer.Choice{Name: "a", Strategy: good}, trainer.Choice{Name: "a", Strategy: good}),
		`the strategy "b" to switch to or from is nil`:          trainer.NewSwitching(trainer.Choice{Name: "a", Strategy: good}, trainer.Choice{Name: "b"}),
	} {
		require.ErrorContains(t, begin(t.Context(), g, s, m.Params(), trainer.State{}), want)
		require.NoError(t, g.Err(), "nothing was sent")
	}
}

type noGroup struct{ err error }

func (b noGroup) Group(context.Context) (*collective.Group, error) { return nil, b.err }

func (b noGroup) Regroup(context.Context, *collective.Group) (*collective.Group, error) {
	return nil, b.err
}

func TestOnlyGroup(t *testing.T) {
	views, transports := collective.Local(1)
	g := collective.NewGroup(views[0], collective.OverTransport(views[0], transports[0]), collective.Options{})
	defer g.Close()
	got, err := trainer.Only(g).Group(t.Context())
	require.NoError(t, err)
	require.Same(t, g, got)
	_, err = trainer.Only(g).Regroup(t.Context(), g)
	require.ErrorIs(t, err, collective.ErrClosed, "it works, and there is no other")
	why := errors.New("boom")
	g.Abort(why)
	require.Error(t, g.Barrier(t.Context()))
	_, err = trainer.Only(g).Regroup(t.Context(), g)
	require.ErrorIs(t, err, why)
}

// One AllReduce survives a View: when one rank of three is lost, the two that are
// left start again in the next group from the values and the state that they
// have, and take the steps of two ranks that began there.
func TestNextGroup(t *testing.T) {
	const before, after = 7, 9
	train := func(ranks int, first trainer.State, values []float32, steps int, again func(rank int, s *trainer.AllReduce, p *nn.Params)) {
		views, transports := collective.Local(ranks)
		var all sync.WaitGroup
		for r := range ranks {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				defer cancel()
				g := collective.NewGroup(views[r], collective.OverTransport(views[r], transports[r]), collective.Options{})
				defer g.Close()
				b := cpu.New(cpu.Options{})
				defer b.Close()
				m, err := nn.NewClassifier(b, models.ReluReluSoftmax(4, 0), []int{3}, 2, 1)
				assert.NoError(t, err)
				p, s := m.Params(), trainer.NewAllReduce(b, optim.DefaultAdam())
				copy(p.Values.Float32s(), values)
				assert.NoError(t, begin(ctx, g, s, p, first))
				walk(ctx, t, s, p, r, first.Step, steps)
				again(r, s, p)
			})
		}
		all.Wait()
	}
	next, nextTransports := collective.Local(2)
	var got, want [2][]float32
	var state trainer.State
	var values []float32
	train(3, trainer.State{}, nil, before, func(rank int, s *trainer.AllReduce, p *nn.Params) {
		if rank == 2 {
			return // it is lost
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		own, err := s.State(ctx, true)
		assert.NoError(t, err)
		if rank == 0 {
			state, values = own, slices.Clone(p.Values.Float32s())
		}
		g := collective.NewGroup(next[rank], collective.OverTransport(next[rank], nextTransports[rank]), collective.Options{})
		defer g.Close()
		assert.NoError(t, begin(ctx, g, s, p, own))
		walk(ctx, t, s, p, rank, before, after)
		got[rank] = slices.Clone(p.Values.Float32s())
	})
	train(2, state, values, after, func(rank int, _ *trainer.AllReduce, p *nn.Params) {
		want[rank] = slices.Clone(p.Values.Float32s())
	})
	require.NotEqual(t, values, got[0])
	require.Equal(t, got[0], got[1])
	require.Equal(t, want, got)
}

// walk takes steps with gradients that depend on rank and step.
func walk(ctx context.Context, t *testing.T, s trainer.Strategy, p *nn.Params, rank, first, steps int) {
	for step := first; step < first+steps; step++ {
		for i := range p.Grads.Float32s() {
			p.Grads.Float32s()[i] = float32((i+1)*(rank+2)%7-3) * float32(step+1)
		}
		_, err := s.Step(ctx, p, trainer.Step{Index: step, Weight: 1})
		if !assert.NoError(t, err) {
			return
		}
	}
}
