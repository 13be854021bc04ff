package paramserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// Sync is the strategy in which all workers push their gradients to the servers, and pull
// the new values, in every step. The bits are those of trainer.AllReduce in ring order, with
// any number of servers.
//
// A step in which a gradient, or a sum of them, is not finite changes no value. If a rank
// fails later in a step, servers may have made it: resume from a checkpoint then.
type Sync struct {
	backend   nn.Backend
	optimizer optim.Optimizer
	servers   Servers

	workers   *collective.Group
	agreement *trainer.Agreement
	exchange  *exchange
	layout    []byte // encoded
	steps     int    // done
	arena     int    // elements of the workers' arenas

	asynchronous *asynchronous // of Async, or nil
}

var _ trainer.Strategy = (*Sync)(nil)

// Servers says which ranks are servers. The zero value makes every worker one.
type Servers struct {
	// Among is the number of workers that are also servers, beginning with rank 0. 0 means
	// all of them, as does a number larger than that of the workers.
	Among int
	// Group has the workers as its first ranks, in the order of Start.Group, and the servers
	// after them. They call Serve. If it is set, no worker is a server. The strategy does
	// not close it.
	Group *collective.Group
	// Regroup returns the Group after one in which a server was lost; cause is how this
	// worker lost it, or nil if only another one has. All servers are started again in that
	// Group, see ServeKept, and training continues. If Regroup is nil, it ends. The workers'
	// own group must not break with Group.
	Regroup func(ctx context.Context, cause error) (*collective.Group, error)
}

// NewSync makes the strategy. A worker that is a server updates its share on b with o, which
// stay the caller's. Parameters are in host memory.
func NewSync(b nn.Backend, o optim.Optimizer, s Servers) *Sync {
	return &Sync{backend: b, optimizer: o, servers: s}
}

// Start implements trainer.Strategy. Rank 0 gives its values to all ranks, and to the
// servers also the optimizer's state.
func (s *Sync) Start(ctx context.Context, start trainer.Start) (trainer.Place, error) {
	if _, _, device := start.Params.Values.Device(); device {
		return trainer.Place{}, errors.New("paramserver: the parameters are in device memory, and servers only work in host memory: use --device cpu, or the strategy allreduce")
	}
	r, err := s.ranks(start.Group)
	if err != nil {
		return trainer.Place{}, err
	}
	s.workers, s.agreement = start.Group, trainer.NewAgreement(start.Group, s.backend)
	from, err := s.agreement.Start(ctx, start, trainer.Setting{Name: "the strategy", Value: fmt.Sprintf("%s with %d servers", s.name(), len(r.servers))})
	if err != nil {
		return trainer.Place{}, err
	}
	if err := s.agreement.Values(ctx, start.Params); err != nil {
		return trainer.Place{}, err
	}
	l := layoutOf(start.Params, s.optimizer.Slots())
	l.Asynchronous = s.asynchronous
	if s.layout, err = l.encode(); err != nil {
		return trainer.Place{}, err
	}
	s.exchange = newExchange(r, l, updater{s.backend, s.optimizer, ""})
	s.steps, s.arena = from.Step, start.Params.Values.Len()
	err = s.untilServed(ctx, func(bool) error {
		return s.load(ctx, func(slot string) ([]float32, error) {
			if slot == "" {
				return start.Params.Values.Float32s(), nil
			}
			return savedSlot(from, slot, s.arena)
		})
	})
	return trainer.Place{View: start.Group.View(), Step: from.Step}, err
}

func (s *Sync) name() string {
	if s.asynchronous != nil {
		return s.asynchronous.Policy.String()
	}
	return "ps-sync"
}

// groupOf returns the group of workers and servers.
func (s *Sync) groupOf(workers *collective.Group) *collective.Group {
	if s.servers.Group != nil {
		return s.servers.Group
	}
	return workers
}

// load gives the servers what they begin with.
func (s *Sync) load(ctx context.Context, source func(slot string) ([]float32, error)) error {
	x := s.exchange
	if err := s.introduce(ctx, verbStart); err != nil {
		return err
	}
	return x.load(ctx, int64(s.steps), source)
}

// introduce tells the servers what they share.
func (s *Sync) introduce(ctx context.Context, v verb) error {
	x := s.exchange
	if _, err := commands(ctx, x.ranks, command{verb: v, step: int64(s.steps), number: int64(len(s.layout))}); err != nil {
		return err
	}
	if s.servers.Group == nil {
		return nil
	}
	if err := collective.Broadcast(ctx, x.group, s.layout, 0); err != nil {
		return fmt.Errorf("paramserver: sending the layout of the parameters to the servers: %w", err)
	}
	return nil
}

// ranks returns those of the job that has these workers.
func (s *Sync) ranks(workers *collective.Group) (ranks, error) {
	g, n := s.servers.Group, workers.Size()
	switch {
	case g == nil && s.servers.Among > 0:
		return ranks{workers, n, span(0, min(n, s.servers.Among))}, nil
	case g == nil:
		return ranks{workers, n, span(0, n)}, nil
	case g.Size() <= n || g.Rank() != workers.Rank():
		return ranks{}, fmt.Errorf("paramserver: Servers.Group must have the %d workers as its first ranks and servers after them: it has %d ranks, and rank %d of the workers is its rank %d",
			n, g.Size(), workers.Rank(), g.Rank())
	}
	return ranks{g, n, span(n, g.Size())}, nil
}

// span returns the numbers from lo to hi, excluding hi.
func span(lo, hi int) []int {
	all := make([]int, hi-lo)
	for i := range all {
		all[i] = lo + i
	}
	return all
}

// savedSlot returns a slot of a saved state.
func savedSlot(from trainer.State, name string, want int) ([]float32, error) {
	saved, ok := from.Slots[name]
	if !ok {
		return nil, fmt.Errorf("paramserver: the saved state has no slot %q", name)
	}
	if len(saved) != want {
		return nil, fmt.Errorf("paramserver: the saved slot %q has %d elements, this model's has %d", name, len(saved), want)
	}
	return saved, nil
}

// Step implements trainer.Strategy.
func (s *Sync) Step(ctx context.Context, p *nn.Params, step trainer.Step) (trainer.Report, error) {
	if err := s.backend.Sync(ctx); err != nil {
		return trainer.Report{}, err
	}
	begin := time.Now()
	limited, cancel := s.agreement.Begin(ctx, step)
	defer cancel()
	report, err := s.agreement.Step(limited, p, step, trainer.NotFinite(p))
	if err != nil {
		return report, err
	}
	c := command{verb: verbStep, step: int64(s.steps), rows: report.Weight > 0}
	if !step.Undivided {
		c.number = int64(report.Weight)
	}
	err = s.untilServed(ctx, func(again bool) error {
		if again {
			return s.stepAgain(ctx, p, c)
		}
		return s.step(limited, p, c)
	})
	if err != nil {
		return report, err
	}
	if s.steps++; report.Weight > 0 {
		report.Bytes, report.Buckets = 4*p.Grads.Len(), 1
		report.Sent = s.exchange.sent()
		report.Plain = report.Sent
		report.Update = s.exchange.updating
		report.Exchange = time.Since(begin) - report.Update
	}
	return report, nil
}

// step tells the servers about a step and makes it.
func (s *Sync) step(ctx context.Context, p *nn.Params, c command) error {
	x := s.exchange
	if _, err := commands(ctx, x.ranks, c); err != nil {
		return err
	}
	if c.rows {
		x.pack(p.Grads.Float32s())
	}
	return s.stepped(p, c, x.step(ctx, c))
}

// stepAgain finishes a step in which a server was lost.
func (s *Sync) stepAgain(ctx context.Context, p *nn.Params, c command) error {
	ahead, err := s.resume(ctx)
	if err != nil || !ahead {
		return cmp.Or(err, s.step(ctx, p, c))
	}
	return s.stepped(p, c, nil)
}

// stepped is the end of a step that the servers have made, or that has failed.
func (s *Sync) stepped(p *nn.Params, c command, err error) error {
	if sums := (*notFiniteError)(nil); errors.As(err, &sums) {
		return s.agreement.SumNotFinite(int(c.step), sums.parameter)
	}
	if err == nil && c.rows {
		s.exchange.unpack(p.Values.Float32s())
	}
	return err
}

// Total implements trainer.Strategy: the sum over all workers.
func (s *Sync) Total(ctx context.Context, own nn.Counts) (nn.Counts, error) {
	return s.agreement.Total(ctx, own)
}

// Finish implements trainer.Strategy: all workers must hold the same values.
func (s *Sync) Finish(ctx context.Context, p *nn.Params) error {
	return s.agreement.Finish(ctx, p)
}

// State implements trainer.Strategy. The slots have the layout of the workers' arenas, so
// that a job with another number of servers, or another strategy, can resume.
func (s *Sync) State(ctx context.Context, wanted bool) (trainer.State, error) {
	state := trainer.State{Step: s.steps, Slots: map[string][]float32{}}
	err := s.untilServed(ctx, func(again bool) error {
		if again {
			if _, err := s.resume(ctx); err != nil {
				return err
			}
		}
		return s.slots(ctx, wanted, state.Slots)
	})
	return state, err
}

// slots sets all slots from those of the servers, if they are wanted here.
func (s *Sync) slots(ctx context.Context, wanted bool, slots map[string][]float32) error {
	x := s.exchange
	all, err := commands(ctx, x.ranks, command{verb: verbState, step: int64(s.steps), wanted: wanted})
	if err != nil {
		return err
	}
	return x.slots(ctx, func(worker int) bool { return all[worker].wanted }, func(slot string) {
		if wanted {
			slots[slot] = make([]float32, s.arena)
			x.unpack(slots[slot])
		}
	})
}

// Close implements trainer.Strategy. Servers of Servers.Group keep their shares, and serve
// until End.
func (s *Sync) Close() error {
	s.exchange = nil
	return nil
}
