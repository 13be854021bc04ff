package trainertest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// A periodic is a LocalSGD with another Step, unless that is nil.
type periodic struct {
	*trainer.LocalSGD
	rank int
	step stepOf
}

type stepOf func(m *periodic, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error)

func (m *periodic) Start(ctx context.Context, s trainer.Start) (trainer.Place, error) {
	m.rank = s.Group.Rank()
	return m.LocalSGD.Start(ctx, s)
}

func (m *periodic) Step(ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
	if m.step == nil {
		return m.LocalSGD.Step(ctx, p, s)
	}
	return m.step(m, ctx, p, s)
}

// The suite finds what is wrong with strategies whose ranks agree after every second step.
func TestChecksFindPeriodicMutants(t *testing.T) {
	for name, m := range map[string]struct {
		check, says string
		step        stepOf
	}{
		"a rank that goes its own way": {"Step", "ranks 0 and 1 hold different values", func(m *periodic, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
			r, err := m.LocalSGD.Step(ctx, p, s)
			if m.rank == 1 && s.Index == 3 {
				first(p)
			}
			return r, err
		}},
		"rows of other ranks in between": {"Step", "it has", func(m *periodic, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
			r, err := m.LocalSGD.Step(ctx, p, s)
			r.Weight++
			return r, err
		}},
		"the rows of the last step": {"Step", "all ranks have", func(m *periodic, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
			r, err := m.LocalSGD.Step(ctx, p, s)
			r.Weight = s.Weight
			return r, err
		}},
		"a stop in between": {"Stop", "that no rank has asked for", func(m *periodic, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
			r, err := m.LocalSGD.Step(ctx, p, s)
			r.Stop = r.Stop || s.Stop
			return r, err
		}},
		"a stop that is forgotten": {"Stop", "the report does not say so", func(m *periodic, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
			s.Stop = s.Stop && s.Index%2 == 1
			return m.LocalSGD.Step(ctx, p, s)
		}},
		"a failed outer step that changes values": {"Failure", "the values have changed", func(m *periodic, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
			r, err := m.LocalSGD.Step(ctx, p, s)
			if err != nil {
				first(p)
			}
			return r, err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			suite := func(step stepOf) Suite {
				return Suite{
					Promises: Promises{Lockstep: true, Every: 2, Equal: true, Compares: true, Resumes: true},
					New: func(b nn.Backend) trainer.Strategy {
						return &periodic{LocalSGD: trainer.NewLocalSGD(b, optim.DefaultAdam(), trainer.DiLoCo(2)), step: step}
					},
				}
			}
			require.NoError(t, checkOf(t, m.check).run(newHarness(t, suite(nil)), 2))
			require.ErrorContains(t, checkOf(t, m.check).run(newHarness(t, suite(m.step)), 2), m.says)
		})
	}
}
