package trainer_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// memorySaver is a Saver that keeps everything, and fails at some steps.
type memorySaver struct {
	saved  map[int]trainer.Snapshot
	values map[int][]float32
	fails  func(step int) error // may be nil
}

func (s *memorySaver) Save(_ context.Context, x trainer.Snapshot) error {
	if s.fails != nil {
		if err := s.fails(x.Step); err != nil {
			return err
		}
	}
	if s.saved == nil {
		s.saved, s.values = map[int]trainer.Snapshot{}, map[int][]float32{}
	}
	s.saved[x.Step], s.values[x.Step] = x, slices.Clone(x.Params.Values.Float32s())
	return nil
}

func (s *memorySaver) steps() []int { return slices.Sorted(maps.Keys(s.saved)) }

// saves returns the job with a Saver and a snapshot every 7 steps.
func (j job) saves(to *memorySaver) job {
	change := j.change
	j.change = func(rank int, c *trainer.Config) {
		if change != nil {
			change(rank, c)
		}
		c.SaveEvery = 7
		if rank == 0 {
			c.Saver = to
		}
	}
	return j
}

// from returns the job resuming from a snapshot that only rank 0 has.
func (j job) from(s *memorySaver, step int) job {
	change := j.change
	j.change = func(rank int, c *trainer.Config) {
		if change != nil {
			change(rank, c)
		}
		if rank == 0 {
			c.From = s.saved[step].State
			copy(c.Task.Params().Values.Float32s(), s.values[step])
		}
	}
	return j
}

// A run that resumes from any snapshot ends with the bits of one that was not
// interrupted: in the middle of an epoch, with dropout, moments, averages and a
// changing learn rate. An epoch has 13 steps here.
func TestResumeIsExact(t *testing.T) {
	adam := optim.DefaultAdam()
	adam.LearnRate = optim.WarmupLinear(.01, 5, 60)
	for _, usual := range []job{
		{ranks: 3, batch: 16, steps: 40, dropout: .2, optimizer: adam, bucket: fiveBuckets},
		{ranks: 1, micro: 3, batch: 16, steps: 40, dropout: .2, optimizer: adam},
	} {
		kept := new(memorySaver)
		whole := usual.saves(kept).run(t)
		require.NoError(t, whole[0].err)
		require.Equal(t, []int{7, 14, 21, 28, 35, 40}, kept.steps())
		require.Equal(t, whole[0].values, kept.values[40], "what is saved at the end is the result")
		require.True(t, kept.saved[40].Last)
		require.False(t, kept.saved[35].Last)
		for _, step := range []int{7, 21, 28} {
			again := new(memorySaver)
			for r, o := range usual.saves(again).from(kept, step).run(t) {
				require.NoError(t, o.err)
				require.Equal(t, whole[0].values, o.values, "rank %d from step %d", r, step)
				require.Len(t, o.steps, 40-step)
				require.Equal(t, step+1, o.steps[0].Step)
				for i, e := range o.steps {
					require.Equal(t, whole[r].steps[step+i].Loss, e.Loss)
				}
				require.Equal(t, 40, o.result.Steps)
				require.Equal(t, whole[r].result.Loss, o.result.Loss)
				require.Equal(t, whole[r].result.Final.Counts, o.result.Final.Counts)
			}
			require.Equal(t, kept.saved[40].State, again.saved[40].State)
			require.Equal(t, step+7-step%7, again.steps()[0], "not the snapshot that it resumes from")
		}
	}
}

// One rank with N micro-batches resumes from the snapshot of N ranks.
func TestResumeAsMicroBatches(t *testing.T) {
	ranks := job{ranks: 2, batch: 16, steps: 20, dropout: .2, optimizer: optim.DefaultAdam()}
	micro := ranks
	micro.ranks, micro.micro = 1, 2
	kept := new(memorySaver)
	whole := ranks.saves(kept).run(t)
	require.Equal(t, whole[0].values, micro.from(kept, 14).run(t)[0].values)
}

// A job with another number of ranks can resume: all its ranks hold the same values, but
// the bits differ from those of an uninterrupted run.
func TestResumeWithOtherRanks(t *testing.T) {
	fast := optim.DefaultAdam()
	fast.LearnRate = optim.Constant(.01)
	usual := job{ranks: 2, batch: 16, steps: 120, optimizer: fast}
	kept := new(memorySaver)
	whole := usual.saves(kept).run(t)
	usual.ranks = 3
	out := usual.from(kept, 63).run(t)
	for _, o := range out {
		require.NoError(t, o.err)
		require.Equal(t, out[0].values, o.values)
		require.Equal(t, 120, o.result.Steps)
		require.Less(t, o.steps[0].Loss, .9*whole[0].steps[0].Loss, "it does not begin anew")
	}
	require.NotEqual(t, whole[0].values, out[0].values)
}

// A run that has completed all steps is only evaluated when it resumes.
func TestResumeAtTheEnd(t *testing.T) {
	usual := job{ranks: 2, batch: 16, steps: 14, optimizer: optim.DefaultSGD(.1)}
	kept, again := new(memorySaver), new(memorySaver)
	whole := usual.saves(kept).run(t)
	require.True(t, kept.saved[14].Last, "it is saved once, and known as the last")
	for _, o := range usual.saves(again).from(kept, 14).run(t) {
		require.NoError(t, o.err)
		require.Empty(t, o.steps)
		require.Equal(t, whole[0].values, o.values)
		require.Equal(t, 14, o.result.Steps)
		require.Equal(t, whole[0].result.Final.Counts, o.result.Final.Counts)
	}
	require.Empty(t, again.saved)
}

type savings struct {
	outcome
	events []trainer.SaveEvent
}

func (s *savings) Saved(e trainer.SaveEvent) { s.events = append(s.events, e) }

// A run that is stopped saves a snapshot of the step where it stopped.
func TestStopIsSaved(t *testing.T) {
	stop := make(chan struct{})
	kept := new(memorySaver)
	usual := job{ranks: 2, batch: 16, steps: 30, dropout: .2, optimizer: optim.DefaultAdam()}
	whole := usual.run(t)
	stopping := usual
	stopping.change = func(rank int, c *trainer.Config) {
		if rank == 1 {
			c.Stop = stop
			c.Observer = observeSteps(func(e trainer.StepEvent) {
				if e.Step == 9 {
					close(stop)
				}
			})
		}
	}
	for _, o := range stopping.saves(kept).run(t) {
		require.ErrorIs(t, o.err, trainer.ErrStopped)
	}
	require.Equal(t, []int{7, 10}, kept.steps())
	require.True(t, kept.saved[10].Last)
	require.Equal(t, whole[0].values, usual.from(kept, 10).run(t)[0].values)
}

func TestSaverMayFail(t *testing.T) {
	full := errors.New("the disk is full")
	usual := job{ranks: 2, batch: 16, steps: 20, optimizer: optim.DefaultSGD(.1)}
	whole := usual.run(t)
	kept := &memorySaver{fails: func(step int) error {
		if step == 14 {
			return full
		}
		return nil
	}}
	told := new(savings)
	watched := usual
	watched.change = func(rank int, c *trainer.Config) {
		if rank == 0 {
			c.Observer = told
		}
	}
	for _, o := range watched.saves(kept).run(t) {
		require.NoError(t, o.err)
		require.Equal(t, whole[0].values, o.values)
	}
	require.Equal(t, []int{7, 20}, kept.steps())
	require.Len(t, told.events, 3)
	require.NoError(t, told.events[0].Err)
	require.Equal(t, 14, told.events[1].Step)
	require.ErrorIs(t, told.events[1].Err, full)

	usual.change = func(_ int, c *trainer.Config) { c.RequireSave = true }
	for _, o := range usual.saves(kept).run(t) {
		require.ErrorContains(t, o.err, "the disk is full", "the other ranks get the reason too")
		require.Equal(t, 14, o.result.Steps)
	}
}

// The last snapshot is required. If it cannot be saved, Train fails on rank 0, whether
// the training was completed or stopped, and the other ranks have ended after the same
// step.
func TestTheLastSaveMustNotFail(t *testing.T) {
	full := errors.New("the disk is full")
	kept := &memorySaver{fails: func(step int) error {
		if step >= 9 {
			return full
		}
		return nil
	}}
	usual := job{ranks: 2, batch: 16, steps: 20, optimizer: optim.DefaultSGD(.1)}
	for _, stops := range []bool{false, true} {
		one, want := usual, 20
		if stops {
			stop := make(chan struct{})
			want = 10
			one.change = func(rank int, c *trainer.Config) {
				if rank == 1 {
					c.Stop = stop
					c.Observer = observeSteps(func(e trainer.StepEvent) {
						if e.Step == 9 {
							close(stop)
						}
					})
				}
			}
		}
		for rank, o := range one.saves(kept).run(t) {
			require.Equal(t, want, o.result.Steps)
			require.Equal(t, stops, errors.Is(o.err, trainer.ErrStopped))
			if rank != 0 {
				continue // only Group.Abort reports the failure to the other ranks
			}
			var unsaved *trainer.SaveError
			require.ErrorAs(t, o.err, &unsaved)
			require.True(t, unsaved.Last)
			require.Equal(t, want, unsaved.Step)
			require.ErrorIs(t, o.err, full)
		}
	}
}

// A snapshot of another model is refused. So is any snapshot if gradients are never
// zeroed, because it does not contain them.
func TestResumeRefuses(t *testing.T) {
	usual := job{ranks: 2, batch: 16, steps: 20, optimizer: optim.DefaultSGD(.1)}
	kept := new(memorySaver)
	usual.saves(kept).run(t)
	adam := usual
	adam.optimizer = optim.DefaultAdam()
	for _, o := range adam.from(kept, 14).run(t) {
		require.ErrorContains(t, o.err, `the saved state has no slot "m"`)
	}
	usual.change = func(_ int, c *trainer.Config) { c.Accumulate = true }
	for _, o := range usual.from(kept, 14).run(t) {
		require.ErrorIs(t, o.err, trainer.ErrForgets)
		require.True(t, trainer.Unanimous(o.err))
	}
}
