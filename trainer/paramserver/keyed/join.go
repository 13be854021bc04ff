package keyed

import (
	"context"
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
)

// maxListing is the maximum length of a server's listing.
const maxListing = 1 << 28

// ranks are those of a group: clients first, then servers.
type ranks struct {
	group   *collective.Group
	clients int
}

// ranksOf returns the ranks of g, whose last ones are the servers.
func ranksOf(g *collective.Group, servers int) (ranks, error) {
	if servers < 1 || servers >= g.Size() {
		return ranks{}, fmt.Errorf("keyed: the number of servers must be from 1 to %d in a group of %d ranks, not %d", g.Size()-1, g.Size(), servers)
	}
	return ranks{g, g.Size() - servers}, nil
}

func (r ranks) servers() int { return r.group.Size() - r.clients }

// describe returns a rank and its name.
func (r ranks) describe(rank int) string {
	return fmt.Sprintf("rank %d (%s)", rank, r.group.View().Name(rank))
}

// exchange tells all ranks what the servers hold already. All ranks call it, servers with
// the sizes of their keys. The result is the same on each.
func (r ranks) exchange(ctx context.Context, sizes map[string]int) (*directory, error) {
	own := listing(sizes)
	facts := make([]int64, 2*r.group.Size())
	if err := collective.AllGather(ctx, r.group, facts, []int64{int64(r.servers()), int64(len(own))}); err != nil {
		return nil, fmt.Errorf("keyed: waiting for all clients and servers: %w", err)
	}
	counts, total := make([]int, r.group.Size()), 0
	for rank := range counts {
		if servers := facts[2*rank]; servers != int64(r.servers()) {
			return nil, fmt.Errorf("keyed: %s expects %d servers, and this rank %d: pass the same number on every rank", r.describe(rank), servers, r.servers())
		}
		bytes := facts[2*rank+1]
		if bytes < 0 || bytes > maxListing {
			return nil, fmt.Errorf("keyed: %s lists its keys in %d bytes, and at most %d are allowed: use fewer keys, or run the same version on every machine", r.describe(rank), bytes, maxListing)
		}
		counts[rank] = int(bytes)
		total += counts[rank]
	}
	texts := make([]byte, total)
	if total > 0 {
		if err := r.group.AllGatherV(ctx, collective.Of(texts), collective.Of([]byte(own)), counts); err != nil {
			return nil, fmt.Errorf("keyed: exchanging the keys of the servers: %w", err)
		}
	}
	d := newDirectory(r.servers())
	for rank, n := range counts {
		if rank >= r.clients {
			if err := d.list(string(texts[:n]), rank-r.clients); err != nil {
				return nil, fmt.Errorf("keyed: %w", err)
			}
		}
		texts = texts[n:]
	}
	return d, nil
}
