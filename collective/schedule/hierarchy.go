package schedule

import "slices"

// hierarchy moves as little as possible between hosts. On each host, as many
// ranks as the smallest host has are owners, each of one piece of the vector.
// On each host, every rank sends each owner its piece. The owners of a piece,
// one per host, reduce it by a ring. Then each owner sends the result to its
// host.
func (c *moveList) hierarchy(rank int, hosts []int, whole extent) {
	l := localityOf(rank, hosts)
	owned := func(local int) extent { return whole.part(local, l.owners) }
	owner := l.local < l.owners
	// In each round, every sender has a receiver that expects it.
	for i := 1; i < l.locals; i++ {
		to, from := Pair(l.local, l.locals, i)
		out, in := noPeer, noPeer
		var piece, mine extent
		if to < l.owners {
			out, piece = l.ranked(hosts, to), owned(to)
		}
		if owner {
			in, mine = l.ranked(hosts, from), owned(l.local)
		}
		c.exchange(out, piece, in, mine, Combine)
	}
	if owner {
		c.across(l, owned(l.local))
	}
	for i := 1; i < l.locals; i++ {
		to, from := Pair(l.local, l.locals, i)
		out, in := noPeer, noPeer
		var mine, piece extent
		if owner {
			out, mine = l.ranked(hosts, to), owned(l.local)
		}
		if from < l.owners {
			in, piece = l.ranked(hosts, from), owned(from)
		}
		c.exchange(out, mine, in, piece, Keep)
	}
}

// across is a ring AllReduce of a piece among its owners.
func (c *moveList) across(l locality, piece extent) {
	chunk := func(i int) extent { return piece.part(i, l.hosts) }
	for i := range RingSteps(l.hosts) {
		s := RingStep(l.index, l.hosts, i)
		act := Keep
		if s.Fold {
			act = Combine
		}
		if i == l.hosts-1 {
			c.finish(chunk(Owned(l.index, l.hosts)))
		}
		c.exchange(l.up, chunk(s.Send), l.down, chunk(s.Recv), act)
	}
	if l.hosts == 1 {
		c.finish(piece)
	}
}

// A locality is the position of a rank among the hosts.
type locality struct {
	host          int
	local, locals int // the rank's position on its host, and the host's number of ranks
	index, hosts  int // the host's position, in order of first ranks, and the number of hosts
	owners        int // number of ranks on each host that own a piece
	up, down      int // owners of the same piece on the next and the previous host
}

// localityOf returns a rank's locality. It scans hosts repeatedly to avoid
// allocating.
func localityOf(rank int, hosts []int) locality {
	l := locality{host: hosts[rank], owners: len(hosts)}
	for r, h := range hosts {
		if h == l.host {
			if r < rank {
				l.local++
			}
			l.locals++
		}
		if !firstOf(r, hosts) {
			continue
		}
		if h == l.host {
			l.index = l.hosts
		}
		l.hosts++
		n := 0
		for _, other := range hosts {
			if other == h {
				n++
			}
		}
		l.owners = min(l.owners, n)
	}
	l.up, l.down = l.peer(hosts, mod(l.index+1, l.hosts)), l.peer(hosts, mod(l.index-1, l.hosts))
	return l
}

// firstOf reports whether a rank is the first of its host.
func firstOf(rank int, hosts []int) bool {
	return !slices.Contains(hosts[:rank], hosts[rank])
}

// ranked returns the rank at a position on the host.
func (l locality) ranked(hosts []int, local int) int { return nth(hosts, l.host, local) }

// peer returns the rank that has this rank's position on the index-th host, or
// noPeer.
func (l locality) peer(hosts []int, index int) int {
	for r, h := range hosts {
		if !firstOf(r, hosts) {
			continue
		}
		if index == 0 {
			return nth(hosts, h, l.local)
		}
		index--
	}
	return noPeer
}

// nth returns the i-th rank of a host, or noPeer.
func nth(hosts []int, host, i int) int {
	for r, h := range hosts {
		if h == host {
			if i == 0 {
				return r
			}
			i--
		}
	}
	return noPeer
}
