package paramserver

import (
	"cmp"
	"slices"

	"github.com/ringtrain/ringtrain/nn"
)

// A piece is the part of a parameter that one server holds: all of it, or whole blocks of
// nn.BlockSize elements.
type piece struct {
	param  int // index in the layout
	lo, hi int // elements of the parameter
}

func (p piece) len() int { return p.hi - p.lo }

// split divides parameters among servers. The largest comes first and goes to the server
// that has the least. With cut, a parameter larger than twice the mean share is cut into
// pieces first. The result depends only on the arguments, so every rank computes the same.
// It has a share for every server, in the order of the arenas.
func split(params []parameter, servers int, cut bool) [][]piece {
	total := 0
	for _, q := range params {
		total += q.Len
	}
	mean := max(total/servers, 1)
	var pieces []piece
	for i, q := range params {
		if cut && q.Momentum == 0 && q.Len > 2*mean {
			pieces = append(pieces, cutParameter(i, q.Len, mean)...)
			continue
		}
		pieces = append(pieces, piece{i, 0, q.Len})
	}
	slices.SortStableFunc(pieces, func(a, b piece) int { return cmp.Compare(b.len(), a.len()) })
	shares, load := make([][]piece, servers), make([]int, servers)
	for _, p := range pieces {
		s := slices.Index(load, slices.Min(load))
		shares[s] = append(shares[s], p)
		load[s] += p.len()
	}
	for _, share := range shares {
		slices.SortFunc(share, func(a, b piece) int { return cmp.Or(cmp.Compare(a.param, b.param), cmp.Compare(a.lo, b.lo)) })
	}
	return shares
}

// cutParameter cuts n elements at blocks into pieces of nearly equal size, of at most most
// elements or one block.
func cutParameter(param, n, most int) []piece {
	blocks := nn.Blocks(n)
	each := max(most/nn.BlockSize, 1)
	parts := (blocks + each - 1) / each
	var pieces []piece
	for k := range parts {
		lo, hi := blocks*k/parts*nn.BlockSize, blocks*(k+1)/parts*nn.BlockSize
		pieces = append(pieces, piece{param, lo, min(hi, n)})
	}
	return pieces
}
