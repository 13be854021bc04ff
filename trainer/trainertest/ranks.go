package trainertest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/trainer"
)

// A rank is one rank of a check, with a model and the strategy under test. The initial
// values differ between ranks.
type rank struct {
	*harness
	group    *collective.Group
	backend  nn.Backend
	model    nn.Model[nn.Batch]
	params   *nn.Params
	strategy trainer.Strategy
	meeting  *meeting // of all ranks
	arrived  bool     // at the meeting

	doing atomic.Value // string: the call in progress
}

// A meeting ends when the last of this many ranks arrives.
type meeting struct {
	missing atomic.Int32
	ended   chan struct{} // closed by the last to arrive
}

func newMeeting(size int) *meeting {
	m := &meeting{ended: make(chan struct{})}
	m.missing.Store(int32(size))
	return m
}

// together waits until every rank calls it or has returned from the check. A rank calls it
// before it fails on purpose: the news of its failure may overtake what it has sent, and
// then interrupts calls of others that have not yet received that.
func (r *rank) together(ctx context.Context) error {
	r.arrive()
	select {
	case <-r.meeting.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// arrive counts this rank, once.
func (r *rank) arrive() {
	if !r.arrived && r.meeting.missing.Add(-1) == 0 {
		close(r.meeting.ended)
	}
	r.arrived = true
}

// ranks runs f on every rank of a new group.
func (h *harness) ranks(size int, f func(ctx context.Context, r *rank) error) error {
	return h.inGroups(h.groups(size), f)
}

// groups connects this many ranks.
func (h *harness) groups(size int) []*collective.Group {
	views, transports := h.Connect(h.t, size)
	groups := make([]*collective.Group, size)
	for i := range groups {
		groups[i] = collective.NewGroup(views[i], collective.OverTransport(views[i], transports[i]), collective.Options{})
	}
	return groups
}

// inGroups makes a rank for each group, runs f on all of them concurrently, and then
// closes strategies, backends and groups. It returns the errors of all ranks. A rank
// that does not return in time is an error.
func (h *harness) inGroups(groups []*collective.Group, f func(ctx context.Context, r *rank) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), h.patience)
	defer cancel()
	defer func() {
		for _, g := range groups {
			_ = g.Close() // some checks break it
		}
	}()
	ranks := make([]*rank, len(groups))
	ended := make(chan error, len(groups))
	left := len(groups)
	meeting := newMeeting(len(groups))
	for i, g := range groups {
		r, err := h.newRank(g)
		if err != nil {
			return err
		}
		r.meeting = meeting
		ranks[i] = r
	}
	for i, r := range ranks {
		go func() {
			err := f(ctx, r)
			r.arrive()
			if ctx.Err() != nil {
				err = errors.Join(err, fmt.Errorf("%v did not return within %v", r.doing.Load(), h.patience))
			}
			if err != nil {
				err = fmt.Errorf("rank %d: %w", i, err)
				r.group.Abort(err) // so that the others do not wait
			}
			ended <- err
		}()
	}
	// Closing its group ends a rank that ignores the end of ctx.
	lost := time.NewTimer(2 * h.patience)
	defer lost.Stop()
	var all error
	for ; left > 0; left-- {
		select {
		case err := <-ended:
			all = errors.Join(all, err)
		case <-lost.C:
			return errors.Join(all, fmt.Errorf("%d ranks ignore the end of their context", left))
		}
	}
	for i, r := range ranks {
		if err := r.strategy.Close(); err != nil {
			all = errors.Join(all, fmt.Errorf("rank %d: Close: %w", i, err))
		}
		all = errors.Join(all, r.backend.Close())
	}
	return all
}

// The model's input and output.
const (
	features = side * side
	side     = 8
	classes  = 10
)

func (h *harness) newRank(g *collective.Group) (*rank, error) {
	b := cpu.New(cpu.Options{})
	m, err := nn.NewClassifier(b, models.ReluReluSoftmax(6, .2), []int{features}, classes, uint64(g.Rank()+1))
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	r := &rank{harness: h, group: g, backend: b, model: m, params: m.Params(), strategy: h.New(b)}
	r.doing.Store("the check")
	return r, nil
}

// values returns a copy of this rank's values.
func (r *rank) values() []float32 { return slices.Clone(r.params.Values.Float32s()) }

// unchanged returns an error if this rank's values are not these.
func (r *rank) unchanged(values []float32) error {
	if err := sameBits(values, r.params.Values.Float32s()); err != nil {
		return fmt.Errorf("the values have changed: %w", err)
	}
	return nil
}

// sameBits returns an error that names the first element that differs.
func sameBits(want, got []float32) error {
	if len(want) != len(got) {
		return fmt.Errorf("want %d elements, got %d", len(want), len(got))
	}
	for i := range want {
		if math.Float32bits(want[i]) != math.Float32bits(got[i]) {
			return fmt.Errorf("element %d: want %v, got %v", i, want[i], got[i])
		}
	}
	return nil
}

// allEqual returns an error if the vectors of two ranks differ.
func allEqual(vectors [][]float32) error {
	for i, v := range vectors {
		if err := sameBits(vectors[0], v); err != nil {
			return fmt.Errorf("ranks 0 and %d hold different values: %w", i, err)
		}
	}
	return nil
}
