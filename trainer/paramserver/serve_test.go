package paramserver

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// A seat is one rank of a job of workers and servers that a test steps by hand.
type seat struct {
	group, workers *collective.Group
	backend        nn.Backend
	params         *nn.Params
	strategy       *Sync
}

// together runs work on every worker and serve on every server, which are apart, and returns
// the errors by rank.
func together(t *testing.T, workers, servers int, work func(ctx context.Context, s *seat) error, serve func(ctx context.Context, g *collective.Group) error) []error {
	groups := local(t, workers, servers)
	errs := make([]error, len(groups))
	each(groups, func(rank int) {
		ctx, g := deadline(t), groups[rank]
		role := 0
		if rank >= workers {
			role = 1
		}
		peers, err := g.Sub(ctx, role, rank)
		if !assert.NoError(t, err) {
			return
		}
		defer peers.Close()
		if role == 1 {
			errs[rank] = serve(ctx, g)
			return
		}
		b := cpu.New(cpu.Options{})
		defer b.Close()
		errs[rank] = work(ctx, newSeat(t, b, g, peers))
	})
	return errs
}

func newSeat(t *testing.T, b nn.Backend, g, peers *collective.Group) *seat {
	m, err := nn.NewClassifier(b, models.ReluReluSoftmax(8, 0), []int{4}, 3, uint64(g.Rank()+1))
	require.NoError(t, err)
	return &seat{g, peers, b, m.Params(), NewSync(b, optim.DefaultAdam(), Servers{Group: g})}
}

// serving returns the usual server of so many workers.
func serving(workers int) func(ctx context.Context, g *collective.Group) error {
	return func(ctx context.Context, g *collective.Group) error {
		b := cpu.New(cpu.Options{})
		defer b.Close()
		return Serve(ctx, g, workers, b, optim.DefaultAdam())
	}
}

func (s *seat) start(ctx context.Context) error {
	_, err := s.strategy.Start(ctx, trainer.Start{Group: s.workers, Params: s.params})
	return err
}

// step takes a step in which every gradient is x.
func (s *seat) step(ctx context.Context, x float32) error {
	for i := range s.params.Grads.Float32s() {
		s.params.Grads.Float32s()[i] = x
	}
	_, err := s.strategy.Step(ctx, s.params, trainer.Step{Index: s.strategy.steps, Weight: 1})
	return err
}

// values returns a copy of the worker's values.
func (s *seat) values() []float32 { return append([]float32(nil), s.params.Values.Float32s()...) }

// A server that fails ends every worker's step with an error that names it. No value
// changes.
func TestServerFails(t *testing.T) {
	full := errors.New("the memory of this server is full")
	for name, fail := range map[string]func(g *collective.Group){
		"aborts": func(g *collective.Group) { g.Abort(full) },
		"leaves": func(g *collective.Group) { _ = g.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			const workers, culprit = 3, 4
			errs := together(t, workers, 2, func(ctx context.Context, s *seat) error {
				assert.NoError(t, s.start(ctx))
				assert.NoError(t, s.step(ctx, .1))
				before := s.values()
				err := s.step(ctx, .2)
				assert.Equal(t, before, s.values())
				return err
			}, func(ctx context.Context, g *collective.Group) error {
				if g.Rank() != culprit {
					return serving(workers)(ctx, g)
				}
				b := cpu.New(cpu.Options{})
				defer b.Close()
				r := ranks{g, workers, span(workers, g.Size())}
				all, err := commands(ctx, r, command{})
				assert.NoError(t, err)
				x, err := begin(ctx, r, updater{backend: b, optimizer: optim.DefaultAdam()}, all[0])
				assert.NoError(t, err)
				assert.NoError(t, x.load(ctx, 0, nil))
				all, err = commands(ctx, r, command{})
				assert.NoError(t, err)
				assert.NoError(t, x.serveStep(ctx, all[0]))
				_, err = commands(ctx, r, command{}) // when all ranks have taken the first step
				assert.NoError(t, err)
				fail(g)
				return nil
			})
			for rank, err := range errs {
				var lost *collective.RankError
				if rank == culprit {
					continue
				}
				require.ErrorAs(t, err, &lost, "rank %d", rank)
				require.Equal(t, culprit, failed(lost), "rank %d", rank)
			}
		})
	}
}

// failed returns the rank that an error names, among workers and servers.
func failed(lost *collective.RankError) int {
	if lost.Rank < 0 {
		return lost.Whole
	}
	return lost.Rank
}

// A worker that fails ends the servers, and the error names it.
func TestWorkerFails(t *testing.T) {
	why := errors.New("the disk of this worker is full")
	errs := together(t, 2, 2, func(ctx context.Context, s *seat) error {
		assert.NoError(t, s.start(ctx))
		if s.group.Rank() == 1 {
			s.group.Abort(why)
			return nil
		}
		return s.step(ctx, .1)
	}, serving(2))
	for _, rank := range []int{0, 2, 3} {
		var lost *collective.RankError
		require.ErrorAs(t, errs[rank], &lost, "rank %d", rank)
		require.Equal(t, 1, lost.Rank)
		require.ErrorContains(t, errs[rank], why.Error())
	}
}

// Gradients whose sum overflows change no value. Every worker and server names the
// parameter.
func TestSumsThatAreNotFinite(t *testing.T) {
	errs := together(t, 2, 2, func(ctx context.Context, s *seat) error {
		assert.NoError(t, s.start(ctx))
		assert.NoError(t, s.step(ctx, .1))
		before := s.values()
		err := s.step(ctx, math.MaxFloat32)
		assert.Equal(t, before, s.values())
		var sums *trainer.NotFiniteError
		if assert.ErrorAs(t, err, &sums) {
			assert.Equal(t, []int{0, 1}, sums.Ranks)
			assert.Equal(t, 2, sums.Step)
		}
		return err
	}, serving(2))
	for rank, err := range errs {
		require.ErrorContains(t, err, "layers.2.b", "rank %d", rank)
	}
}

// A worker whose own gradients are not finite is named, and the servers stay usable.
func TestGradientsThatAreNotFinite(t *testing.T) {
	errs := together(t, 2, 1, func(ctx context.Context, s *seat) error {
		assert.NoError(t, s.start(ctx))
		x := float32(.1)
		if s.group.Rank() == 1 {
			x = float32(math.Inf(1))
		}
		var bad *trainer.NotFiniteError
		if assert.ErrorAs(t, s.step(ctx, x), &bad) {
			assert.Equal(t, []int{1}, bad.Ranks)
		}
		assert.NoError(t, s.step(ctx, .1))
		return End(ctx, s.group, 2)
	}, serving(2))
	require.NoError(t, errors.Join(errs...))
}

// Mistakes of the caller are errors on every rank that can see them.
func TestServeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		work  func(ctx context.Context, s *seat) error
		serve func(ctx context.Context, g *collective.Group) error
		want  string
	}{
		"another optimizer": {
			func(ctx context.Context, s *seat) error { return s.start(ctx) },
			func(ctx context.Context, g *collective.Group) error {
				b := cpu.New(cpu.Options{})
				defer b.Close()
				return Serve(ctx, g, 2, b, optim.DefaultSGD(.1))
			},
			"give the same config on every machine",
		},
		"a step without a start": {
			func(ctx context.Context, s *seat) error {
				_, err := commands(ctx, ranks{group: s.group, workers: 2}, command{verb: verbStep, step: 3})
				assert.NoError(t, err)
				return s.group.Barrier(ctx)
			},
			serving(2), "does not follow what this server has done",
		},
		"a layout that is none": {
			func(ctx context.Context, s *seat) error {
				_, err := commands(ctx, ranks{group: s.group, workers: 2}, command{verb: verbStart, number: 4})
				assert.NoError(t, err)
				assert.NoError(t, collective.Broadcast(ctx, s.group, []byte("what"), 0))
				return s.group.Barrier(ctx)
			},
			serving(2), "reading the layout of the parameters",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for rank, err := range together(t, 2, 1, c.work, c.serve) {
				require.ErrorContains(t, err, c.want, "rank %d", rank)
			}
		})
	}
	groups := local(t, 2, 0)
	b := cpu.New(cpu.Options{})
	defer b.Close()
	require.ErrorContains(t, Serve(deadline(t), groups[1], 2, b, optim.DefaultAdam()), "rank 1 of 2 cannot be a server after 2 workers")
	require.ErrorContains(t, Serve(deadline(t), groups[1], 0, b, optim.DefaultAdam()), "after 0 workers")
}

// Start refuses what the servers cannot hold.
func TestStartRefuses(t *testing.T) {
	groups := local(t, 1, 0)
	b := cpu.New(cpu.Options{})
	defer b.Close()
	m, err := nn.NewClassifier(b, models.ReluReluSoftmax(8, 0), []int{4}, 3, 1)
	require.NoError(t, err)
	start := trainer.Start{Group: groups[0], Params: m.Params()}
	_, err = NewSync(b, optim.DefaultAdam(), Servers{Group: groups[0]}).Start(deadline(t), start)
	require.ErrorContains(t, err, "must have the 1 workers as its first ranks and servers after them")

	start.From = trainer.State{Step: 3, Slots: map[string][]float32{"m": make([]float32, 1)}}
	_, err = NewSync(b, optim.DefaultAdam(), Servers{}).Start(deadline(t), start)
	require.ErrorContains(t, err, `"m" has 1 elements`)
	start.From.Slots = nil
	_, err = NewSync(b, optim.DefaultAdam(), Servers{}).Start(deadline(t), start)
	require.ErrorContains(t, err, `no slot "m"`)

	start.Params = &nn.Params{Values: nn.OnDevice(0, 64, 8, nn.Float32)}
	_, err = NewSync(b, optim.DefaultAdam(), Servers{}).Start(deadline(t), start)
	require.ErrorContains(t, err, "use --device cpu")
}
