package paramserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ringtrain/ringtrain/collective"
)

// posts are the posts of a rank in the groups of a job, one after another. A lost worker breaks
// the group, in the middle of any message. The ranks that are left then form the next group at
// once, whatever they compute. Each worker repeats its request there, if it has no answer. The
// request has its old number, so a server does not apply a gradient twice.
type posts struct {
	*exchange // of the first group
	survival
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// A survival says how a job continues without a worker. The zero value says that it does not.
type survival struct {
	regroup func(ctx context.Context, cause error) (*collective.Group, error)
	lost    func(lost *collective.RankError, left int) // hears of each lost worker; may be nil
}

func (s survival) survives() bool { return s.regroup != nil }

// newPosts begins to exchange messages in the group of x, and returns the first post.
func newPosts(ctx context.Context, x *exchange, s survival) (*posts, *post, error) {
	m, err := x.group.Messages(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("paramserver: %w", err)
	}
	all, first := &posts{exchange: x, survival: s}, newPost(m, x.group, x.most())
	ctx, all.cancel = context.WithCancel(context.Background())
	all.done.Go(func() { all.follow(ctx, first) })
	return all, first, nil
}

// close ends receiving.
func (s *posts) close() {
	s.cancel()
	s.done.Wait()
}

// follow replaces each post whose group breaks.
func (s *posts) follow(ctx context.Context, p *post) {
	for p != nil {
		select {
		case <-p.ended:
		case <-ctx.Done():
		}
		p.close()
		if ctx.Err() != nil {
			return
		}
		p.successor, p.failure = s.next(ctx, p)
		close(p.replaced)
		p = p.successor
	}
}

// after returns the successor of a post that has failed with cause, or why there is none.
func (s *posts) after(ctx context.Context, p *post, cause error) (*post, error) {
	if !s.survives() || p.group.Err() == nil {
		return nil, cause
	}
	select {
	case <-p.replaced:
		return p.successor, p.failure
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// next forms the next group after that of p broke.
func (s *posts) next(ctx context.Context, p *post) (*post, error) {
	if !s.survives() || !s.spares(p) {
		return nil, p.err
	}
	g, err := s.regroup(ctx, p.err)
	if err != nil {
		return nil, fmt.Errorf("paramserver: forming a group without a lost worker: %w; it was: %w", err, p.err)
	}
	origin, err := originIn(s.group.View(), g.View())
	if err != nil {
		return nil, err
	}
	lost, err := s.missing(p, origin)
	if err != nil {
		return nil, err
	}
	m, err := g.Messages(ctx)
	if err != nil {
		return nil, fmt.Errorf("paramserver: %w", err)
	}
	if s.lost != nil {
		left := len(origin) - len(s.servers)
		for _, e := range lost {
			s.lost(e, left)
		}
	}
	return newLaterPost(m, g, s.most(), origin), nil
}

// spares reports whether the job continues although the group of p broke: it lost a worker that
// is not worker 0, which evaluates and saves. A rank that fails with an error of its own is not
// lost: the others would fail, too.
func (s *posts) spares(p *post) bool {
	e := lostIn(p)
	return e != nil && s.expendable(p.origin[e.Rank])
}

func (s *posts) expendable(rank int) bool { return rank > 0 && rank < s.workers }

// lostIn returns the loss of a rank that broke the group of p, or nil.
func lostIn(p *post) *collective.RankError {
	var e *collective.RankError
	if errors.As(p.err, &e) && e.Rank >= 0 && e.Rank < len(p.origin) && (errors.Is(e.Err, collective.ErrLost) || errors.Is(e.Err, collective.ErrSilent)) {
		return e
	}
	return nil
}

// missing returns the losses between the group of p and a later one, in ranks of the first
// group. It is an error if the job cannot continue without one of them.
func (s *posts) missing(p *post, origin []int) (lost []*collective.RankError, err error) {
	v := p.group.View()
	for rank, was := range p.origin {
		if slices.Contains(origin, was) {
			continue
		}
		e := &collective.RankError{Rank: rank, Node: v.Name(rank), Epoch: v.Epoch + 1, Phase: "connect", Err: collective.ErrLost}
		if first := lostIn(p); first.Rank == rank {
			*e = *first
		}
		if !s.expendable(was) {
			return nil, fmt.Errorf("paramserver: %w", e)
		}
		e.Rank = was
		lost = append(lost, e)
	}
	return lost, nil
}

// originIn returns, for each rank of a view, its rank in the first.
func originIn(first, v collective.View) ([]int, error) {
	origin := make([]int, v.Size())
	for rank, m := range v.Members {
		origin[rank] = slices.IndexFunc(first.Members, func(o collective.Member) bool { return o.Name == m.Name && o.Nonce == m.Nonce })
		if origin[rank] < 0 {
			return nil, fmt.Errorf("paramserver: rank %d (%s) of epoch %d was not in the job's first group: restart the job", rank, m.Name, v.Epoch)
		}
	}
	return origin, nil
}
