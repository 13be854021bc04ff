package trainer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// byHost is a GradientSummer whose sums are complete when the call returns.
type byHost struct{ *collective.Group }

func (s byHost) Sum(grads nn.Buffer) error {
	return s.AllReduce(context.Background(), trainer.Operand(grads), collective.Sum)
}

func (byHost) Join() error { return nil }

func (byHost) Wait(context.Context) error { return nil }

// recorded returns the job with recorded steps, and with rows in the backend's memory.
func (j job) recorded(steps int, apart bool) job {
	change := j.change
	j.change = func(rank int, c *trainer.Config) {
		set := digits()
		sampler, err := data.NewSampler(set.Train.Rows, j.batch, rank, groupOf(c).Size(), 1)
		if err != nil {
			panic(err) // the job's own sampler had the same settings
		}
		c.Task = trainer.NewResident(taskOf(c), set.Train.Resident(j.batch, sampler, c.Backend.(nn.Pacer)))
		c.Recording = &trainer.Recording{Steps: steps, Apart: apart, Summer: byHost{groupOf(c)}}
		if change != nil {
			change(rank, c)
		}
	}
	return j
}

// Recorded steps, with any number of them in a launch, give the same bits and reports
// as steps that are not recorded. That includes the ends of epochs with their smaller
// batches, evaluations, dropout, and an optimizer that changes its kernels.
func TestRecordedSteps(t *testing.T) {
	rising := optim.DefaultRAdam()
	rising.LearnRate = optim.WarmupLinear(.01, 20, 60)
	for ranks, reduce := range map[int]trainer.Reduce{1: trainer.ReduceMean, 2: trainer.ReduceMean, 3: trainer.ReduceSum} {
		plain := job{ranks: ranks, batch: 16, steps: 60, dropout: .2, optimizer: rising, change: func(_ int, c *trainer.Config) { c.Reduce = reduce }}
		want := plain.run(t)
		for _, steps := range []int{0, 3, 8} {
			for _, apart := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d ranks, %d steps, apart %v", ranks, steps, apart), func(t *testing.T) {
					for r, o := range plain.recorded(steps, apart).run(t) {
						require.NoError(t, o.err)
						require.Equal(t, want[r].values, o.values)
						require.Len(t, o.evals, len(want[r].evals))
						for i, e := range want[r].evals {
							e.Elapsed = o.evals[i].Elapsed
							require.Equal(t, e, o.evals[i])
						}
						require.Len(t, o.steps, len(want[r].steps))
						for i, e := range want[r].steps {
							got := o.steps[i]
							require.Equal(t, e.Step, got.Step)
							require.Equal(t, e.Loss, got.Loss, "step %d", i)
							require.Equal(t, []int{e.Weight, e.Bytes, e.Sent, e.Plain}, []int{got.Weight, got.Bytes, got.Sent, got.Plain})
						}
						require.Equal(t, want[r].result.Samples, o.result.Samples)
						require.Equal(t, want[r].result.Final.Counts, o.result.Final.Counts)
					}
				})
			}
		}
	}
}

// thoughtful is an Observer that takes a second for each evaluation.
type thoughtful struct{ trainer.Observer }

func (o thoughtful) Evaluated(e trainer.EvalEvent) {
	<-time.After(time.Second)
	o.Observer.Evaluated(e)
}

// The time between launches, such as that of an evaluation, is not part of a step.
func TestRecordedTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := job{ranks: 1, batch: 16, steps: 22, optimizer: optim.DefaultAdam(), change: func(_ int, c *trainer.Config) {
			c.Observer = thoughtful{c.Observer}
		}}
		o := j.recorded(4, false).run(t)[0]
		require.NoError(t, o.err)
		require.Len(t, o.steps, 22)
		for _, e := range o.steps {
			require.Zero(t, e.Compute, "step %d", e.Step)
		}
		require.Equal(t, 2*time.Second, o.steps[21].Elapsed)
	})
}

// Gradients of recorded steps leave in buckets, with the same bits as gradients that
// leave at once. If means are added up, each bucket is divided before it leaves.
func TestRecordedBuckets(t *testing.T) {
	for _, reduce := range []trainer.Reduce{trainer.ReduceMean, trainer.ReduceSum} {
		j := job{ranks: 2, batch: 16, steps: 22, dropout: .2, optimizer: optim.DefaultAdam(), change: func(_ int, c *trainer.Config) { c.Reduce = reduce }}
		want := j.recorded(4, false).run(t)
		require.Equal(t, 1, want[0].steps[0].Buckets)
		for apart, buckets := range map[bool]int{false: 6, true: 1} {
			j.bucket = 1 // each parameter
			for _, o := range j.recorded(4, apart).run(t) {
				require.NoError(t, o.err)
				require.Equal(t, want[0].values, o.values)
				require.Equal(t, buckets, o.steps[0].Buckets)
			}
		}
	}
}

// failing is a GradientSummer that fails to queue one sum.
type failing struct {
	byHost
	left int
}

var errQueue = errors.New("the queue is full")

func (s *failing) Sum(grads nn.Buffer) error {
	if s.left--; s.left < 0 {
		return errQueue
	}
	return s.byHost.Sum(grads)
}

// If a sum cannot be queued, its rank ends with an error that names the step.
func TestRecordedSumFails(t *testing.T) {
	j := job{ranks: 2, batch: 16, steps: 5, bucket: 1, optimizer: optim.DefaultAdam(), change: func(rank int, c *trainer.Config) {
		if rank == 1 {
			c.Recording.Summer = &failing{byHost{groupOf(c)}, 6 + 3} // in the second step
		}
	}}
	out := j.recorded(1, false).run(t)
	require.ErrorIs(t, out[1].err, errQueue)
	var who *collective.RankError
	require.ErrorAs(t, out[0].err, &who)
	require.Equal(t, 1, who.Rank)
}

// Ranks with different buckets would add up gradients of different parameters, so they
// get an error.
func TestBucketsDiffer(t *testing.T) {
	j := job{ranks: 2, batch: 16, steps: 2, optimizer: optim.DefaultAdam(), change: func(rank int, c *trainer.Config) {
		c.Strategy.(*trainer.AllReduce).SetBucket(100 + rank)
	}}
	for rank, o := range j.run(t) {
		var differ *trainer.SettingsError
		require.ErrorAs(t, o.err, &differ)
		require.ErrorContains(t, o.err, fmt.Sprintf("the minimum size of a bucket is %d here and %d on rank", 100+rank, 101-rank))
	}
}

// A recorded training resumes from its checkpoints, in the middle of an epoch, recorded
// or not.
func TestRecordedResume(t *testing.T) {
	plain := job{ranks: 2, batch: 24, steps: 30, dropout: .2, optimizer: optim.DefaultAdam()}
	want := plain.run(t)
	var saver memorySaver
	whole := plain.recorded(4, false).saves(&saver).run(t)
	require.Equal(t, want[0].values, whole[0].values)
	require.Equal(t, []int{7, 14, 21, 28, 30}, saver.steps())
	for _, step := range []int{7, 21} {
		require.Equal(t, step, saver.saved[step].State.Step)
		for _, j := range []job{plain, plain.recorded(5, false)} {
			for _, o := range j.from(&saver, step).run(t) {
				require.NoError(t, o.err)
				require.Equal(t, want[0].values, o.values, "from step %d", step)
			}
		}
	}
}

// If one rank asks to stop, all ranks stop after the same launch, at most two launches
// later.
func TestRecordedStop(t *testing.T) {
	stop := make(chan struct{})
	out := job{ranks: 3, batch: 8, steps: 1000, optimizer: optim.DefaultSGD(.1)}.recorded(4, false)
	change := out.change
	out.change = func(rank int, c *trainer.Config) {
		change(rank, c)
		c.Eval.Every = 0
		if rank == 2 {
			c.Stop = stop
			c.Observer = observeSteps(func(e trainer.StepEvent) {
				if e.Step == 8 {
					close(stop)
				}
			})
		}
	}
	ended := out.run(t)
	for r, o := range ended {
		require.ErrorIs(t, o.err, trainer.ErrStopped)
		require.Equal(t, 16, o.result.Steps, "rank %d: steps 8 to 11 reported the stop, and 12 to 15 were already queued", r)
		require.Equal(t, ended[0].values, o.values)
	}
}

// All ranks find a loss that is not finite, at the step where it occurred.
func TestRecordedLossThatIsNotFinite(t *testing.T) {
	out := job{ranks: 2, batch: 8, steps: 50, optimizer: optim.SGD{LearnRate: optim.Constant(math.Inf(1))},
		change: func(_ int, c *trainer.Config) { c.Eval.Every = 0 }}.recorded(4, false).run(t)
	for _, o := range out {
		var bad *trainer.NotFiniteError
		require.ErrorAs(t, o.err, &bad)
		require.Equal(t, 2, bad.Step)
		require.Equal(t, []int{0, 1}, bad.Ranks)
	}
}

// What cannot be recorded is an error before anything begins.
func TestRecordingRefuses(t *testing.T) {
	for text, change := range map[string]func(c *trainer.Config){
		"is not Resident":                      func(c *trainer.Config) { c.Task = taskOf(c) },
		"2 micro-batches":                      func(c *trainer.Config) { t := taskOf(c); t.Train = append(t.Train, t.Train[0]) },
		"2 ranks, and Recording.Summer is nil": func(c *trainer.Config) { c.Recording.Summer = nil },
		"accumulated over all steps":           func(c *trainer.Config) { c.Accumulate = true },
		"is not Recordable":                    func(c *trainer.Config) { c.Strategy = unrecordable{c.Strategy} },
		"is not an nn.Pacer":                   func(c *trainer.Config) { c.Backend = struct{ nn.Backend }{c.Backend} },
		"gradients are compressed": func(c *trainer.Config) {
			c.Strategy.(*trainer.AllReduce).SetCompression(trainer.Compression{Form: trainer.BFloat16})
		},
		"the optimizer struct { optim.Optimizer } is": func(c *trainer.Config) {
			c.Strategy = trainer.NewAllReduce(c.Backend, struct{ optim.Optimizer }{optim.DefaultSGD(1)})
		},
	} {
		j := job{ranks: 2, batch: 8, steps: 2, optimizer: optim.DefaultSGD(.1)}.recorded(2, false)
		recorded := j.change
		j.change = func(rank int, c *trainer.Config) {
			recorded(rank, c)
			change(c)
		}
		for _, o := range j.run(t) {
			require.ErrorContains(t, o.err, "trainer: steps cannot be recorded: ")
			require.ErrorContains(t, o.err, text)
		}
	}
}

// unrecordable hides all methods that are not the Strategy's.
type unrecordable struct{ trainer.Strategy }
