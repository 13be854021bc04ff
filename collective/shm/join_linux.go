package shm

import (
	"context"
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
)

// Join lets the ranks of this host share memory. All members of the View call
// it before they send anything else over under. The result owns under. If this
// host has no other rank, or memory cannot be shared, the result is under
// itself. Join returns an error if the View breaks meanwhile or, with
// Options.Must, if memory is not shared.
func Join(ctx context.Context, v collective.View, under Under, o Options) (collective.Transport, error) {
	ranks := neighbours(v)
	if len(ranks) < 2 {
		return alone(v, under, o)
	}
	if o.reserve == nil {
		o.reserve = reserve
	}
	if o.cannot == nil {
		o.cannot = whyNot()
	}
	s := &setup{ctx: ctx, view: v, under: under, options: o, ranks: ranks, layout: newLayout(len(ranks))}
	defer s.close()
	mem, why, err := s.agree()
	if err != nil || why != nil {
		s.arenaServer.close()
	}
	switch {
	case err != nil:
		return nil, err
	case why != nil && o.Must:
		return nil, fmt.Errorf("%w: %w", ErrNotShared, why)
	case why != nil:
		if o.Log != nil {
			o.Log.Warn("the ranks of this host cannot share memory and use TCP instead", "reason", why)
		}
		return under, nil
	}
	reads := len(ranks) == readers
	if reads {
		if why, err = s.canRead(mem); err != nil {
			s.arenaServer.close()
			_ = mem.close()
			return nil, err
		}
		if reads = why == nil; !reads && o.Log != nil {
			o.Log.Debug("the ranks of this host cannot read each other's memory and copy instead", "reason", why)
		}
	}
	t := newTransport(s, mem, reads)
	if err := t.calibrate(ctx, &o); err != nil {
		s.arenaServer.close()
		return nil, err // the memory is unmapped when the transport below breaks or is closed
	}
	return t, nil
}

func alone(v collective.View, under Under, o Options) (collective.Transport, error) {
	if o.Must && v.Size() > 1 {
		return nil, fmt.Errorf("%w: no other rank is known to be on the host of %s", ErrNotShared, v.Name(v.Self))
	}
	return under, nil
}

// neighbours returns the ranks of this host, or nil if the host is unknown.
func neighbours(v collective.View) []int {
	host := v.Members[v.Self].Host
	if host == 0 {
		return nil
	}
	var ranks []int
	for r, m := range v.Members {
		if m.Host == host {
			ranks = append(ranks, r)
		}
	}
	return ranks
}
