package paramserver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ringtrain/ringtrain/collective"
)

// untilServed calls f, which calls the servers. If a worker loses a server in it, all
// workers wait for the next group, and call f again. f then has to find out what the
// servers had done.
func (s *Sync) untilServed(ctx context.Context, f func(again bool) error) error {
	for again := false; ; again = true {
		err := f(again)
		if s.servers.Regroup == nil {
			return err
		}
		lost, other := s.anyLost(ctx, err)
		if other != nil || !lost {
			return other
		}
		g, err := s.servers.Regroup(ctx, err)
		if err != nil {
			return err
		}
		s.servers.Group = g
		if s.exchange != nil {
			s.exchange.group = g
		}
	}
}

// anyLost reports whether a worker has lost a server. It returns all other errors. Workers
// exchange this in their own group, which no server can break. So they always agree
// whether a call of f was the last.
func (s *Sync) anyLost(ctx context.Context, err error) (bool, error) {
	mine := []int64{0}
	if IsServerLost(err, s.workers.Size()) {
		mine[0] = 1
	} else if err != nil {
		return false, err
	}
	all := make([]int64, s.workers.Size())
	if err := collective.AllGather(ctx, s.workers, all, mine); err != nil {
		return false, fmt.Errorf("paramserver: comparing which servers are left: %w", err)
	}
	return slices.Max(all) > 0, nil
}

// IsServerLost reports whether err means that a server's process ended or does not respond,
// in a group that begins with this many workers. A server that fails with an error of its own
// is not lost: it would fail again.
func IsServerLost(err error, workers int) bool {
	var lost *collective.RankError
	return errors.As(err, &lost) && lost.Rank >= workers &&
		(errors.Is(lost.Err, collective.ErrLost) || errors.Is(lost.Err, collective.ErrSilent) || errors.Is(lost.Err, collective.ErrLeft))
}

// resume makes servers that were started again continue. It reports whether they had
// already taken the step that follows what the workers have. Its values are then in
// exchange.pulled.
func (s *Sync) resume(ctx context.Context) (ahead bool, err error) {
	if err := s.introduce(ctx, verbResume); err != nil {
		return false, err
	}
	return s.exchange.resume(ctx, int64(s.steps))
}

// resume chooses the step from which all continue: the newest that every server holds. A
// server may hold one more, which it gives up. The workers have made the given number of
// steps. They receive the values, in x.pulled, if the servers are one step ahead of them.
//
// No server can be further ahead: it takes a step from the gradients of all workers, which
// they compute from the values of the step before. And no worker can be ahead of a server:
// it has a step's values from all servers, and each saved its share before it sent them.
func (x *exchange) resume(ctx context.Context, steps int64) (ahead bool, err error) {
	newest := steps
	if x.share != nil {
		if newest, err = x.share.newest(); err != nil {
			return false, err
		}
	}
	all := make([]int64, x.group.Size())
	if err := collective.AllGather(ctx, x.group, all, []int64{newest}); err != nil {
		return false, fmt.Errorf("paramserver: agreeing on the step to continue from: %w", err)
	}
	least := all[x.servers[0]]
	for _, s := range x.servers {
		least = min(least, all[s])
	}
	for _, s := range x.servers {
		if all[s] > least+1 || least < steps || least > steps+1 {
			return false, fmt.Errorf("paramserver: rank %d (%s) holds step %d, but the workers have made %d steps and all servers hold step %d: resume from a checkpoint",
				s, x.group.View().Name(s), all[s], steps, least)
		}
	}
	if x.share != nil {
		if err := x.share.load(least); err != nil {
			return false, err
		}
	}
	if least == steps {
		return false, nil
	}
	if err := x.pull(ctx, x.values(), everyone); err != nil {
		return false, fmt.Errorf("paramserver: pulling the values of step %d again: %w", least, err)
	}
	return true, nil
}
