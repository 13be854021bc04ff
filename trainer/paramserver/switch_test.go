package paramserver

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/trainertest"
)

// everyStep is a plan to switch between ps-sync and allreduce before each step. It begins
// with the named one.
func everyStep(first string) (plan []trainer.Switch) {
	names := []string{"ps-sync", "allreduce"}
	if first != names[0] {
		names[0], names[1] = names[1], names[0]
	}
	for steps := range 20 {
		plan = append(plan, trainer.Switch{Steps: steps, Strategy: names[steps%2]})
	}
	return plan
}

// A Switching to and from servers keeps the promises of both strategies.
func TestSwitchingConforms(t *testing.T) {
	for _, servers := range []int{0, 2} {
		t.Run(fmt.Sprintf("%d servers", servers), func(t *testing.T) {
			trainertest.TestStrategy(t, trainertest.Suite{
				New: func(b nn.Backend) trainer.Strategy {
					s := trainer.NewSwitching(
						trainer.Choice{Name: "allreduce", Strategy: trainer.NewAllReduce(b, optim.DefaultAdam())},
						trainer.Choice{Name: "ps-sync", Strategy: NewSync(b, optim.DefaultAdam(), Servers{Among: servers})})
					assert.NoError(t, s.Plan(everyStep("ps-sync")))
					return s
				},
				Promises: trainertest.Promises{Lockstep: true, Equal: true, Compares: true, MicroBatches: true, Resumes: true, Streams: true},
			})
		})
	}
}

// A run that switches has the values and the state of AllReduce, with servers among the
// workers or in processes of their own, however often it switches, and whichever strategy
// comes first or last.
func TestSwitchingEqualsAllReduce(t *testing.T) {
	for _, workers := range []int{1, 3} {
		usual := job{workers: workers, optimizer: optim.DefaultAdam(), steps: 7}
		want := usual.reference(t)
		for name, plan := range map[string][]trainer.Switch{
			"ps, allreduce, ps":        {{Steps: 2, Strategy: "allreduce"}, {Steps: 5, Strategy: "ps-sync"}},
			"ps, allreduce":            {{Steps: 3, Strategy: "allreduce"}},
			"allreduce, ps":            {{Steps: 0, Strategy: "allreduce"}, {Steps: 4, Strategy: "ps-sync"}},
			"every step, ps first":     everyStep("ps-sync"),
			"every step, ps last":      everyStep("allreduce"),
			"after the end: no switch": {{Steps: 7, Strategy: "allreduce"}},
		} {
			for _, servers := range []int{1, 3} {
				for _, apart := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, %d workers %d servers apart %v", name, workers, servers, apart), func(t *testing.T) {
						j := usual
						j.plan, j.servers, j.apart = plan, servers, apart
						j.equals(t, want)
					})
				}
			}
		}
	}
}

// Servers that no worker has started end like others.
func TestEndWithoutStart(t *testing.T) {
	require.NoError(t, errors.Join(together(t, 2, 2, func(ctx context.Context, s *seat) error {
		return End(ctx, s.group, 2)
	}, serving(2))...))
}

// A server that fails while workers switch to it ends the switch on all of them, with an
// error that names it. No value changes.
func TestServerFailsInASwitch(t *testing.T) {
	full := errors.New("the memory of this server is full")
	const workers, culprit = 2, 3
	for verb, fails := range map[verb]string{verbStart: "switching from allreduce to ps-sync after step 2", verbState: "switching from ps-sync to allreduce after step 3"} {
		t.Run(verb.String(), func(t *testing.T) {
			errs := together(t, workers, 2, func(ctx context.Context, s *seat) error {
				b := trainer.NewSwitching(
					trainer.Choice{Name: "allreduce", Strategy: trainer.NewAllReduce(s.backend, optim.DefaultAdam())},
					trainer.Choice{Name: "ps-sync", Strategy: s.strategy})
				assert.NoError(t, b.Plan([]trainer.Switch{{Steps: 2, Strategy: "ps-sync"}, {Steps: 3, Strategy: "allreduce"}}))
				_, err := b.Start(ctx, trainer.Start{Group: s.workers, Params: s.params})
				before := s.values()
				for step := 0; err == nil && step < 5; step++ {
					before = s.values()
					for i := range s.params.Grads.Float32s() {
						s.params.Grads.Float32s()[i] = .1
					}
					_, err = b.Step(ctx, s.params, trainer.Step{Index: step, Weight: 1})
				}
				assert.Equal(t, before, s.values())
				return err
			}, func(ctx context.Context, g *collective.Group) error {
				if g.Rank() != culprit {
					return serving(workers)(ctx, g)
				}
				b := cpu.New(cpu.Options{})
				defer b.Close()
				return failAt(ctx, verb, full, ranks{g, workers, span(workers, g.Size())}, updater{backend: b, optimizer: optim.DefaultAdam()})
			})
			for rank, err := range errs {
				var lost *collective.RankError
				if rank == culprit {
					continue
				}
				require.ErrorAs(t, err, &lost, "rank %d", rank)
				require.Equal(t, culprit, failed(lost), "rank %d", rank)
				require.ErrorContains(t, err, full.Error())
				if rank < workers {
					require.ErrorContains(t, err, fails)
				}
			}
		})
	}
}

// failAt is a server that aborts its group when a command comes.
func failAt(ctx context.Context, at verb, why error, r ranks, u updater) error {
	var x *exchange
	for {
		all, err := commands(ctx, r, command{})
		if err != nil {
			return err
		}
		switch c := all[0]; {
		case c.verb == at:
			r.group.Abort(why)
			return nil
		case c.verb == verbStart:
			if x, err = begin(ctx, r, u, c); err == nil {
				err = x.load(ctx, c.step, nil)
			}
		case c.verb == verbStep:
			err = x.serveStep(ctx, c)
		}
		if err != nil {
			return err
		}
	}
}
