package trainer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
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
	"github.com/ringtrain/ringtrain/trainer/trainertest"
)

// alternating returns a Switching between two strategies with the bits of AllReduce, which
// switches before every step.
func alternating(b nn.Backend) *trainer.Switching {
	bucketed := trainer.NewAllReduce(b, optim.DefaultAdam())
	bucketed.SetBucket(fiveBuckets)
	s := trainer.NewSwitching(trainer.Choice{Name: "a", Strategy: trainer.NewAllReduce(b, optim.DefaultAdam())}, trainer.Choice{Name: "b", Strategy: bucketed})
	var plan []trainer.Switch
	for steps := range 20 {
		plan = append(plan, trainer.Switch{Steps: steps, Strategy: [...]string{"b", "a"}[steps%2]})
	}
	if err := s.Plan(plan); err != nil {
		panic(err)
	}
	return s
}

func TestSwitchingConforms(t *testing.T) {
	promises := allReduce
	promises.Records, promises.Switches = false, false // a Switching sets Step.Switch itself
	for name, change := range map[string]func(s *trainertest.Suite){
		"local":        func(*trainertest.Suite) {},
		"sum of means": func(s *trainertest.Suite) { s.Change = func(c *trainer.Config) { c.Reduce = trainer.ReduceSum } },
		"tcp":          func(s *trainertest.Suite) { s.Connect, s.Sizes = overTCP, []int{2} },
	} {
		t.Run(name, func(t *testing.T) {
			s := trainertest.Suite{New: func(b nn.Backend) trainer.Strategy { return alternating(b) }, Promises: promises}
			change(&s)
			trainertest.TestStrategy(t, s)
		})
	}
	t.Run("without a stream", func(t *testing.T) {
		promises.Streams = false
		trainertest.TestStrategy(t, trainertest.Suite{Sizes: []int{2}, Promises: promises, New: func(b nn.Backend) trainer.Strategy {
			return trainer.NewSwitching(trainer.Choice{Name: "a", Strategy: atOnce{trainer.NewAllReduce(b, optim.DefaultAdam())}})
		}})
	})
}

// atOnce hides that a strategy is a Streamer.
type atOnce struct{ trainer.Strategy }

// usual is the training of these tests. Each makes a part of it with a Switching.
var usual = job{ranks: 3, batch: 4, steps: 8, dropout: .2, optimizer: optim.DefaultAdam()}

// switching gives each rank a Switching between two strategies, which begins with "a".
func (j job) switching(use func(rank int, s *trainer.Switching, c *trainer.Config)) job {
	j.change = func(rank int, c *trainer.Config) {
		s := trainer.NewSwitching(
			trainer.Choice{Name: "a", Strategy: c.Strategy},
			trainer.Choice{Name: "b", Strategy: trainer.NewAllReduce(c.Backend, j.optimizer)})
		c.Strategy = s
		use(rank, s, c)
	}
	return j
}

// A request that reaches one rank makes all of them switch after the same step, whenever it
// comes. The bits are those of a run without it.
func TestRequestsReachAllRanks(t *testing.T) {
	want := usual.run(t)
	for who := range usual.ranks {
		made := make([][]trainer.Switched, usual.ranks)
		out := usual.switching(func(rank int, s *trainer.Switching, c *trainer.Config) {
			s.Observe(func(w trainer.Switched) {
				assert.Equal(t, s.Using(), w)
				assert.Positive(t, w.Took)
				w.Took = 0
				made[rank] = append(made[rank], w)
			})
			c.Eval.Every = 5
			c.Observer = watcher{
				stepped: func(e trainer.StepEvent) {
					if rank == who && e.Step == 2 {
						assert.NoError(t, s.Request("b"))
					}
					if rank == who && e.Step == usual.steps-1 {
						assert.NoError(t, s.Request("b")) // the training ends before the switch
					}
				},
				evaluated: func(e trainer.EvalEvent) {
					if rank == who && e.Step == 5 {
						assert.NoError(t, s.Request("a"))
					}
				},
			}
		}).run(t)
		for rank, o := range out {
			require.NoError(t, o.err)
			require.Equal(t, want[rank].values, o.values)
			require.Equal(t, want[rank].result.Samples, o.result.Samples)
			require.Equal(t, []trainer.Switched{{From: "a", To: "b", Steps: 3}, {From: "b", To: "a", Steps: 6}}, made[rank])
		}
	}
}

// A watcher is an Observer made of functions.
type watcher struct {
	stepped   func(trainer.StepEvent)
	evaluated func(trainer.EvalEvent)
}

func (w watcher) Stepped(e trainer.StepEvent)   { w.stepped(e) }
func (w watcher) Evaluated(e trainer.EvalEvent) { w.evaluated(e) }

// If ranks ask for different strategies in one step, that of the lowest rank comes first and
// the other after the next step. A request for the strategy in use does nothing.
func TestRequestsThatDiffer(t *testing.T) {
	var made []string
	for _, o := range usual.switching(func(rank int, s *trainer.Switching, c *trainer.Config) {
		if rank == 0 {
			s.Observe(func(w trainer.Switched) { made = append(made, fmt.Sprint(w.To, w.Steps)) })
		}
		c.Observer = observeSteps(func(e trainer.StepEvent) {
			if e.Step == 1 || e.Step == 2 && rank == 1 {
				assert.NoError(t, s.Request([...]string{"a", "b", "b"}[rank]))
			}
			if e.Step == 2 && rank == 2 {
				assert.NoError(t, s.Request("a"))
			}
		})
	}).run(t) {
		require.NoError(t, o.err)
	}
	require.Equal(t, []string{"b2", "a3"}, made)
}

// A stop that is requested during a switch ends the training on all ranks. What was saved
// resumes with the same bits, and with the strategy that the plan has then.
func TestStopDuringASwitch(t *testing.T) {
	want := usual.run(t)
	saver := &memorySaver{}
	plan := []trainer.Switch{{Steps: 3, Strategy: "b"}, {Steps: 6, Strategy: "a"}}
	j := usual.saves(saver)
	save := j.change
	for rank, o := range j.switching(func(rank int, s *trainer.Switching, c *trainer.Config) {
		save(rank, c)
		assert.NoError(t, s.Plan(plan))
		stop := make(chan struct{})
		c.Stop = stop
		if rank == 2 {
			s.Observe(func(trainer.Switched) { close(stop) })
		}
	}).run(t) {
		require.ErrorIs(t, o.err, trainer.ErrStopped)
		require.Equal(t, 5, o.result.Steps, "rank %d", rank)
	}
	again := usual.from(saver, 5)
	from := again.change
	var made []string
	for rank, o := range again.switching(func(rank int, s *trainer.Switching, c *trainer.Config) {
		from(rank, c)
		assert.NoError(t, s.Plan(plan))
		if rank == 0 {
			s.Observe(func(w trainer.Switched) { made = append(made, fmt.Sprint(w.To, w.Steps)) })
		}
	}).run(t) {
		require.NoError(t, o.err)
		require.Equal(t, want[rank].values, o.values)
	}
	require.Equal(t, []string{"b5", "a6"}, made)
}

// If a rank dies anywhere in a run that switches before every step, the survivors'
// values are those after a complete step.
func TestDeathInASwitchLeavesWholeSteps(t *testing.T) {
	var kept [][]float32
	whole := usual
	whole.change = func(rank int, c *trainer.Config) {
		if rank == 0 {
			p := c.Task.Params()
			kept = append(kept, slices.Clone(p.Values.Float32s()))
			c.Observer = observeSteps(func(trainer.StepEvent) { kept = append(kept, slices.Clone(p.Values.Float32s())) })
		}
	}
	whole.run(t)
	j := usual
	j.change = func(_ int, c *trainer.Config) { c.Strategy = alternating(c.Backend) }
	var dying *dies
	dieAfter := func(after int64) []*outcome {
		j.connect = func(_ testing.TB, n int) ([]collective.View, []collective.Transport) {
			views, transports := collective.Local(n)
			for r := range transports { // makes all of them send messages
				transports[r] = &dies{Transport: transports[r], after: math.MaxInt64}
			}
			dying = transports[1].(*dies)
			dying.after = after
			return views, transports
		}
		return j.run(t)
	}
	for _, o := range dieAfter(math.MaxInt64) {
		require.NoError(t, o.err)
		require.Equal(t, kept[len(kept)-1], o.values)
	}
	all := dying.sent.Load()
	for after := all / 4; after < all*3/4; after += max(1, all/60) {
		for r, o := range dieAfter(after) {
			require.Error(t, o.err)
			require.Equal(t, kept[o.result.Steps], o.values, "rank %d, death after %d of %d messages", r, after, all)
			var lost *collective.RankError
			if r != 1 && assert.ErrorAs(t, o.err, &lost) {
				assert.Equal(t, 1, lost.Rank)
			}
		}
	}
}

// A rank that fails in the middle of a switch is named by the others, and no value changes.
func TestSwitchFails(t *testing.T) {
	full := errors.New("the memory of this rank is full")
	for _, call := range []string{"Finish", "State", "Start"} {
		t.Run(call, func(t *testing.T) {
			for rank, o := range usual.switching(func(rank int, s *trainer.Switching, c *trainer.Config) {
				before := slices.Clone(c.Task.Params().Values.Float32s())
				c.Observer = observeSteps(func(trainer.StepEvent) { before = slices.Clone(c.Task.Params().Values.Float32s()) })
				t.Cleanup(func() { assert.Equal(t, before, c.Task.Params().Values.Float32s(), "rank %d", rank) })
				a := &faulty{AllReduce: trainer.NewAllReduce(c.Backend, usual.optimizer)}
				b := &faulty{AllReduce: trainer.NewAllReduce(c.Backend, usual.optimizer)}
				if rank == 1 {
					a.call, b.call, a.err, b.err = call, call, full, full
				}
				if call == "Start" {
					a.call = "" // which starts in the beginning
				}
				c.Strategy = trainer.NewSwitching(trainer.Choice{Name: "a", Strategy: a}, trainer.Choice{Name: "b", Strategy: b})
				assert.NoError(t, c.Strategy.(*trainer.Switching).Plan([]trainer.Switch{{Steps: 3, Strategy: "b"}}))
			}).run(t) {
				require.ErrorContains(t, o.err, "switching from a to b after step 3")
				require.ErrorContains(t, o.err, full.Error())
				require.Equal(t, 3, o.result.Steps)
				var lost *collective.RankError
				if rank != 1 {
					require.ErrorAs(t, o.err, &lost)
					require.Equal(t, 1, lost.Rank)
				}
			}
		})
	}
}

// faulty is an AllReduce with one method that fails.
type faulty struct {
	*trainer.AllReduce
	call string
	err  error
}

func (f *faulty) fails(call string) error {
	if f.call == call {
		return f.err
	}
	return nil
}

func (f *faulty) Finish(ctx context.Context, p *nn.Params) error {
	return cmpOr(f.fails("Finish"), func() error { return f.AllReduce.Finish(ctx, p) })
}

func (f *faulty) State(ctx context.Context, wanted bool) (s trainer.State, err error) {
	err = cmpOr(f.fails("State"), func() error { s, err = f.AllReduce.State(ctx, wanted); return err })
	return s, err
}

func (f *faulty) Start(ctx context.Context, start trainer.Start) (p trainer.Place, err error) {
	err = cmpOr(f.fails("Start"), func() error { p, err = f.AllReduce.Start(ctx, start); return err })
	return p, err
}

// cmpOr returns err, or what f returns if that is nil.
func cmpOr(err error, f func() error) error {
	if err != nil {
		return err
	}
	return f()
}

// Ranks that have diverged are found at a switch, which would hide it otherwise.
func TestSwitchComparesValues(t *testing.T) {
	for _, o := range usual.switching(func(rank int, s *trainer.Switching, c *trainer.Config) {
		assert.NoError(t, s.Plan([]trainer.Switch{{Steps: 3, Strategy: "b"}}))
		c.Observer = observeSteps(func(e trainer.StepEvent) {
			if rank == 2 && e.Step == 3 {
				c.Task.Params().Values.Float32s()[7]++
			}
		})
	}).run(t) {
		var differ *trainer.DivergedError
		require.ErrorAs(t, o.err, &differ)
		require.Equal(t, []int{2}, differ.Ranks)
		require.True(t, trainer.Unanimous(o.err))
	}
}

// What one rank plans is made by all. Only rank 0 says what comes first.
func TestPlansDiffer(t *testing.T) {
	for who, want := range [][]string{{"b0", "a4"}, {"b5"}, {"b5"}} {
		var made []string
		for _, o := range usual.switching(func(rank int, s *trainer.Switching, _ *trainer.Config) {
			plan := []trainer.Switch{{Steps: 0, Strategy: "b"}, {Steps: 4, Strategy: "a"}}
			if who > 0 {
				plan[1] = trainer.Switch{Steps: 5, Strategy: "b"}
			}
			if rank == who {
				assert.NoError(t, s.Plan(plan))
			}
			if rank == 0 {
				s.Observe(func(w trainer.Switched) { made = append(made, fmt.Sprint(w.To, w.Steps)) })
			}
		}).run(t) {
			require.NoError(t, o.err)
		}
		require.Equal(t, want, made)
	}
}

func TestSwitchingRefuses(t *testing.T) {
	b := cpu.New(cpu.Options{})
	defer b.Close()
	s := trainer.NewSwitching(
		trainer.Choice{Name: "a", Strategy: trainer.NewAllReduce(b, optim.DefaultAdam())},
		trainer.Choice{Name: "b", Strategy: trainer.NewLocalSGD(b, optim.DefaultAdam(), trainer.DiLoCo(2))})
	require.EqualError(t, s.Request("c"), `the strategy must be a or b, not "c"`)
	require.EqualError(t, s.Plan([]trainer.Switch{{Steps: 1, Strategy: "c"}}), `the strategy must be a or b, not "c"`)
	require.Zero(t, s.Using())
	views, transports := collective.Local(1)
	g := collective.NewGroup(views[0], collective.OverTransport(views[0], transports[0]), collective.Options{})
	defer g.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	m, err := nn.NewClassifier(b, models.ReluReluSoftmax(4, 0), []int{3}, 2, 1)
	require.NoError(t, err)
	require.ErrorContains(t, begin(ctx, g, s, m.Params(), trainer.State{}), "cannot switch to or from b")
}

func TestParseSwitches(t *testing.T) {
	got, err := trainer.ParseSwitches("100:allreduce,200:ps-sync")
	require.NoError(t, err)
	require.Equal(t, []trainer.Switch{{Steps: 100, Strategy: "allreduce"}, {Steps: 200, Strategy: "ps-sync"}}, got)
	for _, text := range []string{"", "allreduce", "100", "100:", ":a", "0:a", "-1:a", "5:a,5:b", "5:a,4:b", "5:a,", "99999999999999999999:a"} {
		_, err := trainer.ParseSwitches(text)
		require.ErrorContains(t, err, fmt.Sprintf("not %q", text))
	}
}

// A rank that is asked to switch takes all others with it. Here one process has both; in a
// job the request comes by ringtrain strategy.
func ExampleSwitching() {
	views, transports := collective.Local(2)
	var ranks sync.WaitGroup
	for r, v := range views {
		ranks.Go(func() {
			ctx, group := context.Background(), collective.NewGroup(v, collective.OverTransport(v, transports[r]), collective.Options{})
			defer group.Close()
			b := cpu.New(cpu.Options{})
			defer b.Close()
			model, err := nn.NewClassifier(b, models.ReluReluSoftmax(4, 0), []int{3}, 2, 1)
			if err != nil {
				fmt.Println(err)
				return
			}
			coarse := trainer.NewAllReduce(b, optim.DefaultAdam())
			coarse.SetBucket(1 << 20)
			s := trainer.NewSwitching(
				trainer.Choice{Name: "fine", Strategy: trainer.NewAllReduce(b, optim.DefaultAdam())},
				trainer.Choice{Name: "coarse", Strategy: coarse})
			if _, err := s.Start(ctx, trainer.Start{Group: group, Params: model.Params()}); err != nil {
				fmt.Println(err)
				return
			}
			for step := range 4 {
				if step == 1 && r == 1 {
					err = s.Request("coarse")
				}
				if _, err2 := s.Step(ctx, model.Params(), trainer.Step{Index: step, Weight: 1}); err != nil || err2 != nil {
					fmt.Println(err, err2)
					return
				}
			}
			if using := s.Using(); r == 0 {
				fmt.Printf("rank 0 switched from %s to %s after step %d\n", using.From, using.To, using.Steps)
			}
		})
	}
	ranks.Wait()
	// Output:
	// rank 0 switched from fine to coarse after step 2
}
