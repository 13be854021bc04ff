package paramserver

// A run is elements that follow each other both in the arenas of the workers and in the arena
// of a share. It contains the padding between its parameters.
type run struct {
	offset int // in the workers' arenas
	at     int // in the arena of the share
	len    int
}

// A route is where what travels between workers and servers lies, by server.
type route [][]run

// routeOf returns the route of the parameters from first on, before end.
func routeOf(l layout, shares [][]piece, first, end int) route {
	all := make(route, len(shares))
	for i, pieces := range shares {
		all[i] = runsOf(l, pieces, first, end)
	}
	return all
}

func runsOf(l layout, pieces []piece, first, end int) (runs []run) {
	at, _ := offsets(pieces)
	before := -1 // the parameter of the piece before
	for k, p := range pieces {
		if p.param < first || p.param >= end {
			continue
		}
		r := run{l.Parameters[p.param].Offset + p.lo, at[k], p.len()}
		if n := len(runs); n > 0 && p.param <= before+1 && r.offset-r.at == runs[n-1].offset-runs[n-1].at {
			runs[n-1].len = r.offset + r.len - runs[n-1].offset
		} else {
			runs = append(runs, r)
		}
		before = p.param
	}
	return runs
}

// routesOf returns the route of each bucket.
func routesOf(l layout, shares [][]piece) (buckets []route) {
	firsts, end := l.Buckets, len(l.Parameters)
	if len(firsts) == 0 {
		firsts = []int{0}
	}
	for _, first := range firsts {
		buckets = append(buckets, routeOf(l, shares, first, end))
		end = first
	}
	return buckets
}

// elements returns the number of elements of a server's share.
func (r route) elements(server int) (n int) {
	for _, part := range r[server] {
		n += part.len
	}
	return n
}
