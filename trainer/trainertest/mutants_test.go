package trainertest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var everything = Promises{Lockstep: true, Equal: true, Compares: true, MicroBatches: true, Resumes: true, Streams: true, Records: true, Switches: true}

// leaked is where a mutant keeps what it should release.
type leaked struct {
	params *nn.Params
	end    chan struct{}
}

var leftover leaked

// mutants lists what is wrong, the check that finds it, and part of its error.
var mutants = []struct {
	name, check, says string
	mutant            mutant
}{
	{"a rank in another place", "Start", "Place says rank 0 of 2", mutant{start: func(m *mutant, ctx context.Context, s trainer.Start) (trainer.Place, error) {
		p, err := m.AllReduce.Start(ctx, s)
		p.View.Self = 0
		return p, err
	}}},
	{"a Start with other values on a rank", "Start", "ranks 0 and 1 hold different values", mutant{start: func(m *mutant, ctx context.Context, s trainer.Start) (trainer.Place, error) {
		p, err := m.AllReduce.Start(ctx, s)
		if m.rank == 1 {
			first(s.Params)
		}
		return p, err
	}}},
	{"a Start with values that no rank has", "Start", "Start changes the values of rank 0", mutant{start: func(m *mutant, ctx context.Context, s trainer.Start) (trainer.Place, error) {
		p, err := m.AllReduce.Start(ctx, s)
		first(s.Params)
		return p, err
	}}},
	{"settings that are not compared", "Settings", "rank 1 has a different setting", mutant{start: func(m *mutant, ctx context.Context, s trainer.Start) (trainer.Place, error) {
		s.Settings = nil
		return m.AllReduce.Start(ctx, s)
	}}},
	{"the rows of one rank", "Step", "all ranks have", mutant{step: func(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
		r, err := m.AllReduce.Step(ctx, p, s)
		r.Weight = s.Weight
		return r, err
	}}},
	{"the loss of one rank", "Step", "the mean over the rows of all ranks", mutant{step: func(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
		r, err := m.AllReduce.Step(ctx, p, s)
		r.Loss = s.Loss / max(float64(s.Weight), 1)
		return r, err
	}}},
	{"a stop that no rank asked for", "Step", "a stop that no rank asked for", mutant{step: func(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
		r, err := m.AllReduce.Step(ctx, p, s)
		r.Stop = true
		return r, err
	}}},
	{"other values on a rank", "Step", "ranks 0 and 1 hold different values", mutant{step: func(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
		r, err := m.AllReduce.Step(ctx, p, s)
		if m.rank == 1 && s.Index == 5 {
			first(p)
		}
		return r, err
	}}},
	{"gradients that are not cleared", "Step", "are not 0", mutant{step: func(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
		r, err := m.AllReduce.Step(ctx, p, s)
		p.Grads.Float32s()[0] = 1
		return r, err
	}}},
	{"steps that change nothing", "Step", "the values of rank 0 do not change", mutant{step: func(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
		values := slices.Clone(p.Values.Float32s())
		r, err := m.AllReduce.Step(ctx, p, s)
		copy(p.Values.Float32s(), values)
		return r, err
	}}},
	{"a step without rows that changes something", "Step", "no rank has rows", mutant{step: func(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
		r, err := m.AllReduce.Step(ctx, p, s)
		if r.Weight == 0 {
			first(p)
		}
		return r, err
	}}},
	{"gradients that change on their way", "Stream", "streamed gradients give different values", mutant{open: func(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) func(lo int) {
		final := m.AllReduce.Open(ctx, p, s)
		return func(lo int) {
			if lo == 0 {
				p.Grads.Float32s()[0]++
			}
			final(lo)
		}
	}}},
	{"an abandoned step that changes values", "Abandon", "the values have changed", mutant{abandon: func(m *mutant, cause error) {
		m.AllReduce.Abandon(cause)
		first(m.params)
	}}},
	{"totals of one rank", "Total", "the counts of all ranks are", mutant{total: func(_ *mutant, _ context.Context, own nn.Counts) (nn.Counts, error) {
		return own, nil
	}}},
	{"totals that lack a count", "Total", "the counts of all ranks are", mutant{total: func(m *mutant, ctx context.Context, own nn.Counts) (nn.Counts, error) {
		all, err := m.AllReduce.Total(ctx, own)
		delete(all, nn.CountLoss)
		return all, err
	}}},
	{"totals in the counts of the caller", "Total", "changes the counts that it is given", mutant{total: func(m *mutant, ctx context.Context, own nn.Counts) (nn.Counts, error) {
		all, err := m.AllReduce.Total(ctx, own)
		own[nn.CountRows] += 100
		return all, err
	}}},
	{"a stop of one rank", "Stop", "the report does not say so", mutant{step: func(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
		r, err := m.AllReduce.Step(ctx, p, s)
		r.Stop = s.Stop
		return r, err
	}}},
	{"a stop of rank 0 alone", "Stop", "rank 1 asks to stop at step 2", mutant{step: func(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
		s.Stop = s.Stop && m.rank == 0
		return m.AllReduce.Step(ctx, p, s)
	}}},
	{"a Finish that changes values", "Finish", "after the first call of Finish: the values have changed", mutant{finish: func(m *mutant, ctx context.Context, p *nn.Params) error {
		defer first(p)
		return m.AllReduce.Finish(ctx, p)
	}}},
	{"a second Finish that fails", "Finish", "the second call: Finish: it has ended", mutant{finish: func(m *mutant, ctx context.Context, p *nn.Params) error {
		if m.finished > 1 {
			return errors.New("it has ended")
		}
		return m.AllReduce.Finish(ctx, p)
	}}},
	{"a Finish that forgets", "Finish", "the first call of Finish changes the state", mutant{state: func(m *mutant, ctx context.Context, wanted bool) (trainer.State, error) {
		s, err := m.AllReduce.State(ctx, wanted)
		if m.finished > 0 {
			clear(s.Slots["m"])
		}
		return s, err
	}}},
	{"values that are not compared", "FinishCompares", "the values of rank 1 differ", mutant{finish: func(*mutant, context.Context, *nn.Params) error { return nil }}},
	{"a state of another step", "State", "it says 4 steps are done, not 3", mutant{state: func(m *mutant, ctx context.Context, wanted bool) (trainer.State, error) {
		s, err := m.AllReduce.State(ctx, wanted)
		s.Step++
		return s, err
	}}},
	{"a state that changes what follows", "State", "later steps give different values", mutant{state: func(m *mutant, ctx context.Context, wanted bool) (trainer.State, error) {
		first(m.params)
		return m.AllReduce.State(ctx, wanted)
	}}},
	{"a state that steps change", "State", "later steps change a State", func() mutant {
		shared := map[*mutant][]float32{}
		return mutant{
			state: func(m *mutant, ctx context.Context, wanted bool) (trainer.State, error) {
				s, err := m.AllReduce.State(ctx, wanted)
				if m.rank == 0 && s.Slots["m"] != nil {
					shared[m] = s.Slots["m"]
				}
				return s, err
			},
			step: func(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
				if m.rank == 0 && shared[m] != nil {
					shared[m][0]++
				}
				return m.AllReduce.Step(ctx, p, s)
			},
		}
	}()},
	{"a Start that forgets the optimizer", "Resume", "resumed steps give different values", mutant{start: forgets(1)}},
	{"a Start that forgets the step", "Resume", "the state is that after step 3", mutant{start: func(m *mutant, ctx context.Context, s trainer.Start) (trainer.Place, error) {
		p, err := m.AllReduce.Start(ctx, s)
		p.Step = 0
		return p, err
	}}},
	{"a Start that changes its argument", "Resume", "change the State that Start was given", mutant{start: func(m *mutant, ctx context.Context, s trainer.Start) (trainer.Place, error) {
		p, err := m.AllReduce.Start(ctx, s)
		if from := s.From.Slots["m"]; from != nil {
			from[0]++
		}
		return p, err
	}}},
	{"a second Start that forgets the optimizer", "NextView", "resumed steps give different values", mutant{start: forgets(2)}},
	{"errors that name no rank", "Failure", "the error does not name it: Step 0: something failed", mutant{step: func(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
		r, err := m.AllReduce.Step(ctx, p, s)
		if err != nil {
			err = errors.New("something failed")
		}
		return r, err
	}}},
	{"failures that pass unnoticed", "Failure", "the error does not name it: <nil>", mutant{step: func(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
		r, _ := m.AllReduce.Step(ctx, p, s)
		return r, nil
	}}},
	{"a failed step that changes values", "Failure", "the values have changed", mutant{step: func(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
		r, err := m.AllReduce.Step(ctx, p, s)
		if err != nil {
			first(p)
		}
		return r, err
	}}},
	{"a call that ignores its context", "Cancel", "ranks ignore the end of their context", mutant{step: func(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
		return m.AllReduce.Step(context.WithoutCancel(ctx), p, s)
	}}},
	{"a call that waits for its own limit", "Cancel", "Step did not return within 30s", mutant{step: func(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), 45*time.Second)
		defer cancel()
		return m.AllReduce.Step(own, p, s)
	}}},
	{"an error without the reason", "Cancel", "does not say that it was cancelled", mutant{total: func(m *mutant, ctx context.Context, own nn.Counts) (nn.Counts, error) {
		all, err := m.AllReduce.Total(ctx, own)
		if err != nil {
			err = errors.New("no total")
		}
		return all, err
	}}},
	{"a call that does not wait", "Cancel", "it succeeds, but no other rank makes the call", mutant{finish: func(*mutant, context.Context, *nn.Params) error { return nil }}},
	{"a second Close that fails", "Close", "the second call: closed", mutant{close: func(m *mutant) error {
		if m.closed > 1 {
			return errors.New("closed")
		}
		return nil
	}}},
	{"a Close that changes values", "Close", "the values have changed", mutant{close: func(m *mutant) error {
		if m.params != nil {
			first(m.params)
		}
		return nil
	}}},
	{"a goroutine that never ends", "Close", "goroutines are left", mutant{start: func(m *mutant, ctx context.Context, s trainer.Start) (trainer.Place, error) {
		end := leftover.end
		go func() { <-end }()
		return m.AllReduce.Start(ctx, s)
	}}},
	{"parameters that stay reachable", "Close", "something still refers to the parameters", mutant{start: func(m *mutant, ctx context.Context, s trainer.Start) (trainer.Place, error) {
		if m.rank == 0 {
			leftover.params = s.Params
		}
		return m.AllReduce.Start(ctx, s)
	}}},
	{"ranks that end with different values", "Train", "end with different values", mutant{finish: func(m *mutant, ctx context.Context, p *nn.Params) error {
		if m.rank == 1 {
			first(p)
		}
		return nil
	}}},
	{"a run that stops alone", "Train", "asks to stop", mutant{step: func(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
		r, err := m.AllReduce.Step(ctx, p, s)
		r.Stop = s.Stop
		return r, err
	}}},
	{"an evaluation of one share", "Train", "the evaluation counts", mutant{total: func(_ *mutant, _ context.Context, own nn.Counts) (nn.Counts, error) {
		return own, nil
	}}},
	{"gradients divided by one rank's rows", "MicroBatches", "one rank with 2 micro-batches", mutant{open: inStep, step: func(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
		for i := range p.Grads.Float32s() {
			p.Grads.Float32s()[i] /= float32(max(s.Weight, 1))
		}
		return m.AllReduce.Step(ctx, p, s)
	}}},
	{"a request to switch of one rank", "Switch", "asks for strategy 3, but the report has 0", mutant{step: func(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
		r, err := m.AllReduce.Step(ctx, p, s)
		r.Switch = s.Switch
		return r, err
	}}},
	{"a strategy that starts only once", "Restart", "it is closed", mutant{start: func(m *mutant, ctx context.Context, s trainer.Start) (trainer.Place, error) {
		if m.started > 1 {
			return trainer.Place{}, errors.New("it is closed")
		}
		return m.AllReduce.Start(ctx, s)
	}}},
	{"recorded updates twice as large", "Record", "want", mutant{queue: func(scale float32) float32 { return 2 * scale }}},
}

// forgets returns a Start that loses the optimizer's state in one of its calls, counted
// from 1.
func forgets(call int) func(m *mutant, ctx context.Context, s trainer.Start) (trainer.Place, error) {
	return func(m *mutant, ctx context.Context, s trainer.Start) (trainer.Place, error) {
		if from := s.From; m.started == call && from.Slots != nil {
			s.From = cloneState(from)
			for _, slot := range s.From.Slots {
				clear(slot)
			}
		}
		return m.AllReduce.Start(ctx, s)
	}
}

// inStep is an Open after which all gradients leave in Step.
func inStep(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) func(lo int) {
	m.AllReduce.Open(ctx, p, s)
	return func(int) {}
}

// suiteOf returns the suite of a mutant. Its gradients leave in several buckets.
func suiteOf(x mutant) Suite {
	return Suite{Promises: everything, New: func(b nn.Backend) trainer.Strategy {
		m := x
		m.AllReduce = trainer.NewAllReduce(b, optim.DefaultAdam())
		m.SetBucket(64)
		return &m
	}}
}

func checkOf(t *testing.T, name string) check {
	i := slices.IndexFunc(checks, func(c check) bool { return c.name == name })
	require.GreaterOrEqual(t, i, 0, name)
	return checks[i]
}

// The suite finds what is wrong with every mutant, and nothing wrong with the original.
func TestChecksFindMutants(t *testing.T) {
	killers := map[string]bool{}
	for _, m := range mutants {
		killers[m.check] = true
		t.Run(m.name, func(t *testing.T) {
			run := func(t *testing.T) {
				leftover = leaked{end: make(chan struct{})}
				defer close(leftover.end)
				require.NoError(t, checkOf(t, m.check).run(newHarness(t, suiteOf(mutant{})), 2))
				require.ErrorContains(t, checkOf(t, m.check).run(newHarness(t, suiteOf(m.mutant)), 2), m.says)
			}
			if m.check == "Close" { // it counts goroutines, and a bubble has its own
				run(t)
				return
			}
			synctest.Test(t, run)
		})
	}
	for _, c := range checks {
		require.True(t, killers[c.name], "no mutant fails check %s", c.name)
	}
}

// bare hides all methods that are not the Strategy's.
type bare struct{ trainer.Strategy }

// A strategy that lacks what it promises fails, even if nothing else is wrong.
func TestUnkeptPromises(t *testing.T) {
	s := Suite{Promises: everything, New: func(b nn.Backend) trainer.Strategy {
		return bare{trainer.NewAllReduce(b, optim.DefaultAdam())}
	}}
	require.ErrorContains(t, checkStream(newHarness(t, s), 2), "is not a trainer.Streamer")
	require.ErrorContains(t, checkAbandon(newHarness(t, s), 2), "is not a trainer.Streamer")
	require.ErrorContains(t, checkRecord(newHarness(t, s), 2), "is not Recordable")
	s.Streams, s.Records = false, false
	TestStrategy(t, s)
}
