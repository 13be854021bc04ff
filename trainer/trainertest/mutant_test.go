package trainertest

import (
	"context"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// A mutant is an AllReduce with one wrong method. The functions that are set
// replace methods.
type mutant struct {
	*trainer.AllReduce
	rank, started int

	start   func(m *mutant, ctx context.Context, s trainer.Start) (trainer.Place, error)
	step    func(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error)
	total   func(m *mutant, ctx context.Context, own nn.Counts) (nn.Counts, error)
	finish  func(m *mutant, ctx context.Context, p *nn.Params) error
	state   func(m *mutant, ctx context.Context, wanted bool) (trainer.State, error)
	close   func(m *mutant) error
	open    func(m *mutant, ctx context.Context, p *nn.Params, s trainer.Step) func(lo int)
	abandon func(m *mutant, cause error)
	queue   func(scale float32) float32

	params   *nn.Params
	finished int
	closed   int
}

func (m *mutant) Start(ctx context.Context, s trainer.Start) (trainer.Place, error) {
	m.rank, m.params = s.Group.Rank(), s.Params
	m.started++
	if m.start != nil {
		return m.start(m, ctx, s)
	}
	return m.AllReduce.Start(ctx, s)
}

func (m *mutant) Step(ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
	if m.step != nil {
		return m.step(m, ctx, p, s)
	}
	return m.AllReduce.Step(ctx, p, s)
}

func (m *mutant) Total(ctx context.Context, own nn.Counts) (nn.Counts, error) {
	if m.total != nil {
		return m.total(m, ctx, own)
	}
	return m.AllReduce.Total(ctx, own)
}

func (m *mutant) Finish(ctx context.Context, p *nn.Params) error {
	m.finished++
	if m.finish != nil {
		return m.finish(m, ctx, p)
	}
	return m.AllReduce.Finish(ctx, p)
}

func (m *mutant) State(ctx context.Context, wanted bool) (trainer.State, error) {
	if m.state != nil {
		return m.state(m, ctx, wanted)
	}
	return m.AllReduce.State(ctx, wanted)
}

func (m *mutant) Close() error {
	m.closed++
	if m.close != nil {
		return m.close(m)
	}
	return m.AllReduce.Close()
}

func (m *mutant) Open(ctx context.Context, p *nn.Params, s trainer.Step) func(lo int) {
	if m.open != nil {
		return m.open(m, ctx, p, s)
	}
	return m.AllReduce.Open(ctx, p, s)
}

func (m *mutant) Abandon(cause error) {
	if m.abandon != nil {
		m.abandon(m, cause)
		return
	}
	m.AllReduce.Abandon(cause)
}

func (m *mutant) Queue(p *nn.Params, step int, f optim.Form, hyper nn.Buffer, scale float32) {
	if m.queue != nil {
		scale = m.queue(scale)
	}
	m.AllReduce.Queue(p, step, f, hyper, scale)
}

// first changes this rank's first value.
func first(p *nn.Params) { p.Values.Float32s()[0]++ }
