package trainer

import (
	"context"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// LocalSGD is the strategy whose ranks communicate once in a round. A round consists of
// inner steps, which each rank makes with its own optimizer, on its own gradients. It ends
// with an outer step: the negated mean of how far the ranks have moved is the gradient
// with which SGD updates the values that the round began with. All ranks begin the next
// round with the result. Rounds end at multiples of Rounds.Steps, and with the training.
//
// Averaging makes it local SGD, and DiLoCo makes it DiLoCo.
//
// Everything else that ranks exchange goes with the outer step: requests to stop, rows,
// losses that are not finite. The report of an inner step covers this rank alone, that of
// an outer step all ranks and the whole round. A rank that has failed ends the others at
// their next step.
type LocalSGD struct {
	backend nn.Backend
	inner   optim.Optimizer
	rounds  Rounds

	group  *collective.Group // of Start
	params *nn.Params
	state  *optim.State // of inner
	outer  *AllReduce   // makes outer steps
	shared *nn.Params   // what it updates: the values that the round began with
	before nn.Buffer    // the values before the last inner step of a round
	round  round
}

// A round is what a rank remembers of the inner steps since the last outer step.
type round struct {
	open bool // values may differ from the shared ones
	rows int
	loss float64 // summed over the rows
	stop bool    // this rank has asked to stop
	late bool    // ranks may be late
}

var (
	_ Strategy = (*LocalSGD)(nil)
	_ Periodic = (*LocalSGD)(nil)
)

// NewLocalSGD makes the strategy; Start gives it a group, and returns an error if r is out
// of range. The backend and the optimizer of inner steps stay the caller's.
func NewLocalSGD(b nn.Backend, inner optim.Optimizer, r Rounds) *LocalSGD {
	outer := NewAllReduce(b, nesterov{r})
	outer.name, outer.compared, outer.hashAll = r.String(), inner, true
	return &LocalSGD{backend: b, inner: inner, rounds: r, outer: outer}
}

// SetCompression makes what ranks send in an outer step smaller, as
// AllReduce.SetCompression does for gradients.
func (l *LocalSGD) SetCompression(c Compression) { l.outer.SetCompression(c) }

// SetBucket is AllReduce.SetBucket. It matters only with TopK: what is not compressed leaves
// in one piece.
func (l *LocalSGD) SetBucket(bytes int) { l.outer.SetBucket(bytes) }

// Every implements Periodic.
func (l *LocalSGD) Every() int { return l.rounds.Steps }

// Step implements Strategy.
func (l *LocalSGD) Step(ctx context.Context, p *nn.Params, s Step) (Report, error) {
	begin := time.Now()
	if err := l.group.Lost(); err != nil {
		return Report{}, err
	}
	l.round.add(s)
	if !l.rounds.ends(s) {
		l.update(p, s)
		return Report{Loss: s.Loss / float64(max(s.Weight, 1)), Weight: s.Weight, Update: time.Since(begin)}, nil
	}
	l.copy(l.before, p.Values)
	l.update(p, s)
	report, err := l.meet(ctx, p, s.Index)
	if err != nil {
		l.copy(p.Values, l.before)
		return report, err
	}
	report.Update = time.Since(begin) - report.Exchange
	return report, nil
}

// update makes an inner step.
func (l *LocalSGD) update(p *nn.Params, s Step) {
	if s.Weight > 0 {
		if !s.Undivided {
			l.backend.Scale(p.Grads, 1/float32(s.Weight))
		}
		l.inner.Update(l.backend, p, l.state, optim.Whole(p))
	}
	l.state.Step++
}

// meet makes an outer step. Its gradient takes the place of the gradients in p.
func (l *LocalSGD) meet(ctx context.Context, p *nn.Params, index int) (Report, error) {
	l.copy(p.Grads, l.shared.Values)
	l.backend.Axpy(p.Grads, -1, p.Values)
	l.backend.Scale(p.Grads, 1/float32(l.group.Size()))
	r := l.round
	report, err := l.outer.Step(ctx, l.shared, Step{Index: index, Weight: r.rows, Loss: r.loss, Stop: r.stop, Late: r.late, Undivided: true})
	if err != nil {
		return report, err
	}
	l.copy(p.Values, l.shared.Values)
	l.round = round{}
	return report, nil
}

// add adds an inner step.
func (r *round) add(s Step) {
	r.open = true
	r.rows, r.loss = r.rows+s.Weight, r.loss+s.Loss
	r.stop, r.late = r.stop || s.Stop, r.late || s.Late
}

// copy sets dst to src.
func (l *LocalSGD) copy(dst, src nn.Buffer) {
	l.backend.Extract(dst, src, src.Len(), 0, src.Len())
}

// Total implements Strategy, as AllReduce does.
func (l *LocalSGD) Total(ctx context.Context, own nn.Counts) (nn.Counts, error) {
	return l.outer.Total(ctx, own)
}

// Finish implements Strategy. Within a round, it compares the values that the round began
// with.
func (l *LocalSGD) Finish(ctx context.Context, p *nn.Params) error {
	if l.round.open {
		p = l.shared
	}
	return l.outer.Finish(ctx, p)
}

// Close implements Strategy.
func (l *LocalSGD) Close() error { return l.outer.Close() }
