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
// Gradients leave in buckets, each as soon as the backward pass has completed it, and servers
// add those of a bucket while the next comes. They update after the last one, when they know
// that all sums are finite, and of how many rows they are. Each then sends all its values, and
// does not wait for other servers.
//
// A step in which a gradient, or a sum of them, is not finite changes no value. If a rank
// fails later in a step, servers may have made it: resume from a checkpoint then.
type Sync struct {
	backend   nn.Backend
	optimizer optim.Optimizer
	servers   Servers
	bucket    int // bytes; 0: trainer.ChooseBucket

	workers   *collective.Group
	agreement *trainer.Agreement
	exchange  *exchange
	layout    []byte // encoded
	steps     int    // done
	arena     int    // elements of the workers' arenas
	open      *openStep

	asynchronous *asynchronous // of Async, or nil
}

var (
	_ trainer.Strategy = (*Sync)(nil)
	_ trainer.Streamer = (*Sync)(nil)
)

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
	//
	// For Async, it returns the Group after one in which a worker was lost: the ranks that are
	// left, in their order, as cluster.Node.Regroup returns it. Training continues without that
	// worker. Regroup is called in another goroutine. If worker 0 or a server is lost, training
	// ends.
	Regroup func(ctx context.Context, cause error) (*collective.Group, error)
	// Lost, if not nil, hears of each worker that Async continues without, by its rank in
	// Group, and of how many workers are left. It is called in another goroutine.
	Lost func(lost *collective.RankError, left int)
}

// NewSync makes the strategy. A worker that is a server updates its share on b with o, which
// stay the caller's. Parameters are in host memory.
func NewSync(b nn.Backend, o optim.Optimizer, s Servers) *Sync {
	return &Sync{backend: b, optimizer: o, servers: s}
}

// SetBucket sets the minimum number of bytes in a bucket; 0, the default, is
// trainer.ChooseBucket's, and more if otherwise a bucket would occupy only some servers. It does not affect the bits of the result. All workers set the
// same, before Start.
func (s *Sync) SetBucket(bytes int) { s.bucket = bytes }

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
	from, err := s.agreement.Start(ctx, start,
		trainer.Setting{Name: "the strategy", Value: fmt.Sprintf("%s with %d servers", s.name(), len(r.servers))},
		trainer.Setting{Name: "the minimum size of a bucket", Value: fmt.Sprint(s.bucket)})
	if err != nil {
		return trainer.Place{}, err
	}
	if err := s.agreement.Values(ctx, start.Params); err != nil {
		return trainer.Place{}, err
	}
	l := layoutOf(start.Params, s.optimizer.Slots())
	if l.Asynchronous = s.asynchronous; l.Asynchronous == nil {
		l = l.inBuckets(s.buckets(r, start.Params))
	}
	if s.layout, err = l.encode(); err != nil {
		return trainer.Place{}, err
	}
	s.exchange = newExchange(r, l, updater{s.backend, s.optimizer, ""})
	s.exchange.params = start.Params
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

// buckets returns the lengths of buckets.
func (s *Sync) buckets(r ranks, p *nn.Params) []int {
	if s.bucket > 0 {
		return trainer.Buckets(p, s.bucket)
	}
	return Buckets(p, len(r.servers), trainer.ChooseBucket(r.group, p, trainer.Compression{}))
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

// An openStep is a step that has begun.
type openStep struct {
	ctx    context.Context
	end    context.CancelCauseFunc
	sender *bucketSender // nil: nothing leaves before Step
}

func (s *Sync) begin(ctx context.Context, step trainer.Step) {
	limited, release := s.agreement.Begin(ctx, step)
	limited, end := context.WithCancelCause(limited)
	context.AfterFunc(limited, release)
	s.exchange.group.Mark(uint64(step.Index))
	s.open = &openStep{ctx: limited, end: end}
}

// end ends a step. On return nothing is in flight.
func (s *Sync) end(cause error) {
	if s.open == nil {
		return
	}
	s.open.end(cause)
	if s.open.sender != nil {
		s.open.sender.finish()
	}
	s.open = nil
}

// Open implements trainer.Streamer. With a single bucket, nothing leaves before Step.
func (s *Sync) Open(ctx context.Context, p *nn.Params, step trainer.Step) (final func(lo int)) {
	s.begin(ctx, step)
	if len(s.exchange.buckets) < 2 {
		return func(int) {}
	}
	s.open.sender = &bucketSender{exchange: s.exchange, ctx: s.open.ctx, command: s.command(step), grads: p.Grads.Float32s()}
	return s.open.sender.final
}

// Abandon implements trainer.Streamer.
func (s *Sync) Abandon(cause error) {
	if o := s.open; o != nil && o.sender != nil && len(o.sender.works) > 0 {
		o.sender.exchange.group.Abort(cause) // the others may wait for the next bucket
	}
	s.end(cause)
}

// command returns the command of the next step.
func (s *Sync) command(step trainer.Step) command {
	return command{verb: verbStep, step: int64(s.steps), undivided: step.Undivided}
}

// Step implements trainer.Strategy. Buckets may have left since Open.
func (s *Sync) Step(ctx context.Context, p *nn.Params, step trainer.Step) (report trainer.Report, err error) {
	if s.open == nil {
		s.begin(ctx, step)
	}
	defer func() { s.end(err) }()
	if err := s.backend.Sync(s.open.ctx); err != nil {
		return report, err
	}
	begin := time.Now()
	err = s.untilServed(ctx, func(again bool) (err error) {
		if again {
			report, err = s.stepAgain(ctx, p, step)
		} else {
			report, err = s.step(s.open.ctx, p, step)
		}
		return err
	})
	if err != nil {
		return report, err
	}
	if s.steps++; report.Weight > 0 {
		x := s.exchange
		copy(p.Values.Float32s(), x.pulled)
		report.Bytes, report.Buckets = 4*p.Grads.Len(), len(x.buckets)
		report.Sent = x.sent()
		report.Plain = report.Sent
		report.Update = x.updating
		report.Exchange = time.Since(begin) - report.Update
	}
	return report, nil
}

// step sends what has not left, and takes the step.
func (s *Sync) step(ctx context.Context, p *nn.Params, step trainer.Step) (trainer.Report, error) {
	x, c := s.exchange, s.command(step)
	own := contribution{grads: p.Grads.Float32s(), sender: s.open.sender, word: func(search bool) []int64 {
		bad := int64(0)
		if search {
			bad = trainer.NotFinite(p)
		}
		return s.agreement.Word(p, step, bad)
	}}
	if own.sender != nil {
		own.sender.final(0)
	} else if _, err := commands(ctx, x.ranks, c); err != nil {
		return trainer.Report{}, err
	}
	report, err := x.step(ctx, c, own)
	if sums := (*notFiniteError)(nil); errors.As(err, &sums) {
		err = s.agreement.SumNotFinite(int(c.step), sums.parameter)
	}
	return report, err
}

// stepAgain finishes a step in which a server was lost.
func (s *Sync) stepAgain(ctx context.Context, p *nn.Params, step trainer.Step) (trainer.Report, error) {
	if s.open.sender != nil {
		s.open.sender.finish()
		s.open.sender = nil
	}
	ahead, err := s.resume(ctx)
	switch {
	case err != nil:
		return trainer.Report{}, err
	case ahead:
		return s.agreement.Step(ctx, p, step, 0) // some worker may not have the words of all
	}
	return s.step(ctx, p, step)
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
			copy(slots[slot], x.pulled)
		}
	})
}

// Close implements trainer.Strategy. Servers of Servers.Group keep their shares, and serve
// until End.
func (s *Sync) Close() error {
	s.exchange = nil
	return nil
}
