package paramserver

import (
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

	agreement *trainer.Agreement
	exchange  *exchange
	steps     int // done
	arena     int // elements of the workers' arenas

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
	s.agreement = trainer.NewAgreement(start.Group, s.backend)
	from, err := s.agreement.Start(ctx, start, trainer.Setting{Name: "the strategy", Value: fmt.Sprintf("%s with %d servers", s.name(), len(r.servers))})
	if err != nil {
		return trainer.Place{}, err
	}
	if err := s.agreement.Values(ctx, start.Params); err != nil {
		return trainer.Place{}, err
	}
	l := layoutOf(start.Params, s.optimizer.Slots())
	l.Asynchronous = s.asynchronous
	encoded, err := l.encode()
	if err != nil {
		return trainer.Place{}, err
	}
	if _, err := commands(ctx, r, command{verb: verbStart, step: int64(from.Step), number: int64(len(encoded))}); err != nil {
		return trainer.Place{}, err
	}
	if s.servers.Group != nil {
		if err := collective.Broadcast(ctx, r.group, encoded, 0); err != nil {
			return trainer.Place{}, fmt.Errorf("paramserver: sending the layout of the parameters to the servers: %w", err)
		}
	}
	s.exchange = newExchange(r, l, updater{s.backend, s.optimizer})
	s.steps, s.arena = from.Step, start.Params.Values.Len()
	err = s.exchange.load(ctx, int64(from.Step), func(slot string) ([]float32, error) {
		if slot == "" {
			return start.Params.Values.Float32s(), nil
		}
		return savedSlot(from, slot, s.arena)
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
	ctx, cancel := s.agreement.Begin(ctx, step)
	defer cancel()
	report, err := s.agreement.Step(ctx, p, step, trainer.NotFinite(p))
	if err != nil {
		return report, err
	}
	c := command{verb: verbStep, step: int64(s.steps), rows: report.Weight > 0}
	if !step.Undivided {
		c.number = int64(report.Weight)
	}
	if err := s.step(ctx, p, c); err != nil {
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
	err := x.step(ctx, c)
	if sums := (*notFiniteError)(nil); errors.As(err, &sums) {
		return s.agreement.SumNotFinite(int(c.step), sums.parameter)
	}
	if err == nil && c.rows {
		x.unpack(p.Values.Float32s())
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
	x, state := s.exchange, trainer.State{Step: s.steps, Slots: map[string][]float32{}}
	all, err := commands(ctx, x.ranks, command{verb: verbState, step: int64(s.steps), wanted: wanted})
	if err != nil {
		return state, err
	}
	err = x.slots(ctx, func(worker int) bool { return all[worker].wanted }, func(slot string) {
		if wanted {
			state.Slots[slot] = make([]float32, s.arena)
			x.unpack(state.Slots[slot])
		}
	})
	return state, err
}

// Close implements trainer.Strategy. Servers of Servers.Group keep their shares, and serve
// until End.
func (s *Sync) Close() error {
	s.exchange = nil
	return nil
}
