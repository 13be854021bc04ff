package trainer_test

import (
	"cmp"
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// job is a run on a few hundred small digits.
type job struct {
	ranks, batch, steps int
	dropout             float32
	optimizer           optim.Optimizer
	change              func(rank int, c *trainer.Config) // what differs from the usual; may be nil

	micro   int   // micro-batches of each rank; 0: one
	bucket  int   // bytes; 0: as ever
	hidden  int   // 0: 16
	connect maker // nil: in process
	//lint:ignore U1000 tests with -tags gpu use it
	plain bool // a device repeats recordings kernel by kernel
	//lint:ignore U1000 tests with -tags gpu use it
	hooks deviceHooks
}

// deviceHooks are called on each rank of a job on devices. Those that are nil do nothing.
type deviceHooks struct {
	//lint:ignore U1000 tests with -tags gpu use it
	breaking func(rank int, abort func()) // instead of abort, when the rank learns that the group is broken
	//lint:ignore U1000 tests with -tags gpu use it
	summer func(rank int, s trainer.GradientSummer) trainer.GradientSummer
	//lint:ignore U1000 tests with -tags gpu use it
	ended func(rank int, sync func() error) // after Train has failed; sync waits for the device
}

// A maker connects n ranks.
type maker func(t testing.TB, n int) ([]collective.View, []collective.Transport)

func inproc(_ testing.TB, n int) ([]collective.View, []collective.Transport) {
	return collective.Local(n)
}

// outcome is what one rank of a job came to.
type outcome struct {
	result trainer.Result
	values []float32
	steps  []trainer.StepEvent
	evals  []trainer.EvalEvent
	err    error
}

func (o *outcome) Stepped(e trainer.StepEvent)   { o.steps = append(o.steps, e) }
func (o *outcome) Evaluated(e trainer.EvalEvent) { o.evals = append(o.evals, e) }

var digits = sync.OnceValue(func() *data.Set {
	train, test := data.Generate(data.DigitsOptions{Train: 600, Test: 150, Side: 12})
	return &data.Set{Train: train, Test: test}
})

func (j job) run(t testing.TB) []*outcome {
	if j.connect == nil {
		j.connect = inproc
	}
	views, transports := j.connect(t, j.ranks)
	out := make([]*outcome, j.ranks)
	var all sync.WaitGroup
	for r := range out {
		out[r] = new(outcome)
		all.Go(func() { out[r].err = j.rank(t, views[r], transports[r], out[r]) })
	}
	all.Wait()
	return out
}

// begin starts a strategy by itself.
func begin(ctx context.Context, g *collective.Group, s trainer.Strategy, p *nn.Params, from trainer.State) error {
	_, err := s.Start(ctx, trainer.Start{Group: g, Params: p, From: from})
	return err
}

// groupOf is the group of a Config made by job.rank.
func groupOf(c *trainer.Config) *collective.Group {
	g, _ := c.Groups.Group(context.Background()) // trainer.Only never fails
	return g
}

// taskOf is the task of a Config made by job.rank.
func taskOf(c *trainer.Config) *trainer.ModelTask[nn.Batch] {
	if t, ok := c.Task.(*trainer.ResidentTask[nn.Batch]); ok {
		return t.ModelTask
	}
	return c.Task.(*trainer.ModelTask[nn.Batch])
}

func (j job) rank(t testing.TB, v collective.View, tr collective.Transport, o *outcome) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	g := collective.NewGroup(v, collective.OverTransport(v, tr), collective.Options{})
	defer g.Close()
	b := cpu.New(cpu.Options{})
	defer b.Close()
	set := digits()
	m, err := nn.NewClassifier(b, models.ReluReluSoftmax(cmp.Or(j.hidden, 16), j.dropout), []int{set.Train.Features()}, 10, uint64(v.Self))
	if !assert.NoError(t, err) {
		return err
	}
	s := trainer.NewAllReduce(b, j.optimizer)
	if j.bucket > 0 {
		s.SetBucket(j.bucket)
	}
	c := trainer.Config{
		Groups: trainer.Only(g), Backend: b, Strategy: s, Steps: j.steps, Eval: trainer.Evaluations{Every: 10}, Seed: 3, Observer: o,
	}
	task := &trainer.ModelTask[nn.Batch]{
		Model: m, Test: data.NewPart(set.Test.Stage(64, b), set.Test.Rows, v.Self, v.Size(), 64), Measures: []trainer.Measure{trainer.Accuracy},
	}
	c.Task = task
	micro := max(1, j.micro)
	for k := range micro {
		sampler, err := data.NewSampler(set.Train.Rows, j.batch, v.Self*micro+k, v.Size()*micro, 1)
		if !assert.NoError(t, err) {
			return err
		}
		task.Train = append(task.Train, data.NewFeed(set.Train.Stage(j.batch, b), sampler))
	}
	if j.change != nil {
		j.change(v.Self, &c)
	}
	o.result, err = trainer.Train(ctx, c)
	o.values = append([]float32(nil), m.Params().Values.Float32s()...)
	if err == nil {
		err = g.Barrier(ctx)
	} else if !trainer.Unanimous(err) {
		g.Abort(err)
	}
	return err
}

// The point of data parallelism: N ranks with batch B make the same steps as one rank
// with batch N*B. Initial weights differ between ranks on purpose: those of rank 0 are
// used.
func TestRanksEqualOneLargeBatch(t *testing.T) {
	sgd := optim.DefaultSGD(.1)
	for _, ranks := range []int{2, 3, 4} {
		many := job{ranks: ranks, batch: 16, steps: 50, optimizer: sgd}.run(t)
		one := job{ranks: 1, batch: 16 * ranks, steps: 50, optimizer: sgd}.run(t)
		for r, o := range many {
			require.NoError(t, o.err)
			require.Equal(t, many[0].values, o.values, "all ranks hold the same bits")
			require.Equal(t, one[0].result.Samples, o.result.Samples)
			require.InDelta(t, one[0].result.Loss, o.result.Loss, 1e-4)
			require.Equal(t, o.evals, many[r].evals)
			for i := range o.values {
				require.InDelta(t, one[0].values[i], o.values[i], 1e-5, "%d ranks, weight %d", ranks, i)
			}
		}
	}
}

// With dropout too, because masks belong to rows of the global batch.
func TestDropoutDoesNotDependOnRanks(t *testing.T) {
	sgd := optim.DefaultSGD(.1)
	many := job{ranks: 2, batch: 16, steps: 20, dropout: .3, optimizer: sgd}.run(t)
	one := job{ranks: 1, batch: 32, steps: 20, dropout: .3, optimizer: sgd}.run(t)
	for i := range one[0].values {
		require.InDelta(t, one[0].values[i], many[0].values[i], 1e-5)
	}
	again := job{ranks: 2, batch: 16, steps: 20, dropout: .3, optimizer: sgd}.run(t)
	require.Equal(t, many[0].values, again[0].values, "the same bits every time")
}

func TestLearns(t *testing.T) {
	out := job{ranks: 2, batch: 32, steps: 120, dropout: .1, optimizer: optim.DefaultAdam()}.run(t)
	for _, o := range out {
		require.NoError(t, o.err)
		require.Len(t, o.steps, 120)
		require.Len(t, o.evals, 12, "after 10, 20 ... 120 steps")
		for i, e := range o.evals {
			require.Equal(t, 10*(i+1), e.Step, "evaluations count steps as checkpoints do")
		}
		require.Equal(t, 120, o.steps[119].Step)
		require.Equal(t, out[0].result.Final.Counts, o.result.Final.Counts)
		require.EqualValues(t, 150, o.result.Final.Counts[nn.CountRows], "every test row once")
		require.Greater(t, o.result.Final.Metric("accuracy"), .5)
		require.Less(t, o.result.Loss, .75*o.steps[0].Loss)
		require.Equal(t, 64, o.steps[0].Weight)
		require.Positive(t, o.steps[0].Bytes)
	}
}

// The bug of gradients that are never zeroed costs most of the accuracy.
func TestAccumulateReplaysTheBug(t *testing.T) {
	out := job{ranks: 2, batch: 32, steps: 120, dropout: .1, optimizer: optim.DefaultAdam(),
		change: func(_ int, c *trainer.Config) { c.Accumulate = true }}.run(t)
	fixed := job{ranks: 2, batch: 32, steps: 120, dropout: .1, optimizer: optim.DefaultAdam()}.run(t)
	require.NoError(t, out[0].err)
	require.Less(t, out[0].result.Final.Metric("accuracy"), fixed[0].result.Final.Metric("accuracy")-.1)
	require.Equal(t, 64, out[0].steps[5].Weight, "rows are counted as ever")
}

func TestWishToStopEndsAllAfterTheSameStep(t *testing.T) {
	stop := make(chan struct{})
	var once sync.Once
	out := job{ranks: 3, batch: 8, steps: 1000, optimizer: optim.DefaultSGD(.1), change: func(rank int, c *trainer.Config) {
		if rank == 2 {
			c.Stop = stop
			c.Observer = observeSteps(func(e trainer.StepEvent) {
				if e.Step == 8 {
					once.Do(func() { close(stop) })
				}
			})
		}
	}}.run(t)
	for r, o := range out {
		require.ErrorIs(t, o.err, trainer.ErrStopped)
		require.Equal(t, 9, o.result.Steps, "rank %d", r)
		require.Equal(t, out[0].values, o.values)
	}
}

type observeSteps func(trainer.StepEvent)

func (f observeSteps) Stepped(e trainer.StepEvent)   { f(e) }
func (f observeSteps) Evaluated(_ trainer.EvalEvent) {}

// If one rank has a bad batch, all ranks stop, and the others name it and the reason.
func TestBadBatchIsNamedByAll(t *testing.T) {
	out := job{ranks: 3, batch: 8, steps: 20, optimizer: optim.DefaultSGD(.1), change: func(rank int, c *trainer.Config) {
		if rank == 1 {
			task := taskOf(c)
			task.Train[0] = broken{task.Train[0], 5}
		}
	}}.run(t)
	for r, o := range out {
		require.ErrorContains(t, o.err, "the file has changed", "rank %d", r)
		require.InDelta(t, 5, o.result.Steps, 1, "the news may reach a rank that is still in the step before")
		if r != 1 {
			var failed *collective.RankError
			require.ErrorAs(t, o.err, &failed)
			require.Equal(t, 1, failed.Rank)
		}
	}
}

type broken struct {
	trainer.Batches[nn.Batch]
	at int
}

func (b broken) Batch(step int) (nn.Batch, error) {
	if step == b.at {
		return nn.Batch{}, errors.New("the file has changed")
	}
	return b.Batches.Batch(step)
}

// A model that diverges stops all ranks at the same step.
func TestLossThatIsNotFinite(t *testing.T) {
	out := job{ranks: 2, batch: 8, steps: 50, optimizer: optim.SGD{LearnRate: optim.Constant(math.Inf(1))},
		change: func(_ int, c *trainer.Config) { c.Eval.Every = 0 }}.run(t)
	for _, o := range out {
		var bad *trainer.NotFiniteError
		require.ErrorAs(t, o.err, &bad)
		require.Equal(t, 2, bad.Step)
		require.Equal(t, []int{0, 1}, bad.Ranks)
		require.ErrorContains(t, o.err, "rank 0 (local/0), rank 1 (local/1)")
	}
}

// If the last update diverges, the evaluation reports it.
func TestTestLossThatIsNotFinite(t *testing.T) {
	out := job{ranks: 2, batch: 8, steps: 1, optimizer: optim.SGD{LearnRate: optim.Constant(math.Inf(1))}}.run(t)
	for _, o := range out {
		require.ErrorContains(t, o.err, "the test loss after step 1 is not finite")
		var bad *trainer.NotFiniteError
		require.ErrorAs(t, o.err, &bad)
		require.NotEmpty(t, bad.Value, "a parameter is named")
		require.ErrorContains(t, o.err, "nor are the values of "+bad.Value)
	}
}

// Ranks that were given different commands get an error before the first step.
func TestSettingsAreCompared(t *testing.T) {
	out := job{ranks: 4, batch: 8, steps: 3, optimizer: optim.DefaultSGD(.1), change: func(rank int, c *trainer.Config) {
		c.Alike = []trainer.Setting{{Name: "seed", Value: "1"}, {Name: "data", Value: "digits"}, {Name: "config", Value: "x"}}
		if rank == 2 {
			c.Alike[0].Value = "2"
		}
		if rank == 3 {
			c.Alike[2] = trainer.Setting{Name: "config", Value: "y", Parts: []trainer.Setting{{Name: "a.b", Value: "1"}, {Name: "a.c", Value: "2"}}}
		}
	}}.run(t)
	say := []string{"seed is 1 here and 2 on rank 2 (local/2)", "seed is 1 here and 2 on rank 2 (local/2)", "seed is 2 here and 1 on rank 0 (local/0)",
		"a.b is 1 here and not set on rank 0 (local/0); a.c is 2 here and not set on rank 0 (local/0); config is not set here and x on rank 0 (local/0)"}
	for i, o := range out {
		var e *trainer.SettingsError
		require.ErrorAs(t, o.err, &e)
		require.Equal(t, []string{"seed", "config"}, e.Settings)
		require.Equal(t, []int{2, 3}, e.Ranks)
		require.EqualError(t, e, say[i]+"; 2 ranks differ from rank 0, the last is rank 3 (local/3): give the same command, with the same data, on every machine")
		require.Zero(t, o.result.Steps)
	}
}

// So do ranks whose optimizers differ, also those of inner steps.
func TestOptimizersAreCompared(t *testing.T) {
	for name, strategy := range map[string]func(nn.Backend, optim.Optimizer) trainer.Strategy{
		"allreduce": func(b nn.Backend, o optim.Optimizer) trainer.Strategy { return trainer.NewAllReduce(b, o) },
		"local-sgd": func(b nn.Backend, o optim.Optimizer) trainer.Strategy {
			return trainer.NewLocalSGD(b, o, trainer.Rounds{Steps: 2, Rate: 1})
		},
	} {
		for _, o := range (job{ranks: 2, batch: 8, steps: 3, optimizer: optim.DefaultSGD(.1), change: func(rank int, c *trainer.Config) {
			c.Strategy = strategy(c.Backend, optim.DefaultSGD([]float64{.1, .01}[rank]))
		}}).run(t) {
			require.ErrorContains(t, o.err, "the optimizer is optim.SGD", name)
			require.Zero(t, o.result.Steps)
		}
	}
}

// Ranks that made different updates at the very end are found too.
func TestFinalValuesAreCompared(t *testing.T) {
	out := job{ranks: 3, batch: 8, steps: 5, optimizer: optim.DefaultSGD(.1), change: func(rank int, c *trainer.Config) {
		if rank == 1 {
			values := c.Task.Params().Values.Float32s()
			c.Observer = observeSteps(func(e trainer.StepEvent) {
				if e.Step == 5 {
					values[0]++
				}
			})
		}
	}}.run(t)
	for _, o := range out {
		var odd *trainer.DivergedError
		require.ErrorAs(t, o.err, &odd)
		require.Equal(t, []int{1}, odd.Ranks)
		require.ErrorContains(t, o.err, "final values")
	}
}

// If values differ between ranks, all ranks get an error within 50 steps that names those
// that differ. Here one rank changes its own.
func TestDivergenceIsFound(t *testing.T) {
	out := job{ranks: 3, batch: 8, steps: 200, optimizer: optim.DefaultSGD(.1), change: func(rank int, c *trainer.Config) {
		if rank == 2 {
			values := c.Task.Params().Values.Float32s()
			c.Observer = observeSteps(func(e trainer.StepEvent) {
				if e.Step == 61 {
					values[0]++
				}
			})
		}
	}}.run(t)
	for _, o := range out {
		var odd *trainer.DivergedError
		require.ErrorAs(t, o.err, &odd)
		require.Equal(t, []int{2}, odd.Ranks)
		require.Equal(t, 100, o.result.Steps)
	}
}

func TestStateGoesOn(t *testing.T) {
	views, transports := collective.Local(1)
	g := collective.NewGroup(views[0], collective.OverTransport(views[0], transports[0]), collective.Options{})
	defer g.Close()
	b := cpu.New(cpu.Options{})
	defer b.Close()
	m, err := nn.NewClassifier(b, models.ReluReluSoftmax(4, 0), []int{3}, 2, 1)
	require.NoError(t, err)
	ctx := context.Background()
	p := m.Params()
	step := func(s trainer.Strategy, index int) {
		for i := range p.Grads.Float32s() {
			p.Grads.Float32s()[i] = float32(i%5) * .01
		}
		_, err := s.Step(ctx, p, trainer.Step{Index: index, Weight: 2})
		require.NoError(t, err)
	}
	a := trainer.NewAllReduce(b, optim.DefaultAdam())
	require.NoError(t, begin(ctx, g, a, p, trainer.State{}))
	step(a, 0)
	state, err := a.State(ctx, true)
	require.NoError(t, err)
	require.Equal(t, 1, state.Step)
	values := append([]float32(nil), p.Values.Float32s()...)
	step(a, 1)
	want := append([]float32(nil), p.Values.Float32s()...)

	copy(p.Values.Float32s(), values)
	again := trainer.NewAllReduce(b, optim.DefaultAdam())
	require.NoError(t, begin(ctx, g, again, p, state))
	step(again, 1)
	require.Equal(t, want, p.Values.Float32s())

	delete(state.Slots, "m")
	require.ErrorContains(t, begin(ctx, g, trainer.NewAllReduce(b, optim.DefaultAdam()), p, state), `no slot "m"`)
	state.Slots["m"] = make([]float32, 1)
	require.ErrorContains(t, begin(ctx, g, trainer.NewAllReduce(b, optim.DefaultAdam()), p, state), "1 elements")
}
