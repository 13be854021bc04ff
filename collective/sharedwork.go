package collective

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// sharedWork is the work of a round in which all ranks have arrived. It is
// cut into pieces that any free rank can claim. The result has the same bits
// whichever rank folds a piece. Only the counters change while the ranks work.
type sharedWork struct {
	working bool // ranks are claiming pieces
	pieces  int
	per     int           // elements per piece of an AllReduce; the first and last piece may have fewer
	last    int           // the rank that arrived last
	slowest int           // the rank that finished last
	met     time.Duration // when all had arrived, after origin; 0 if the last rank carried out the call alone

	claimed, done atomic.Int64 // pieces
}

// Limits of pieces, in bytes.
const (
	alone      = 32 << 10 // up to this much of all vectors together, one rank is faster alone
	together   = 1 << 20  // of all vectors together per piece, to stay in a core's cache
	leastPiece = 4 << 10  // of one vector per piece
	mostPiece  = 32 << 10
)

// folding is the memory that a rank reuses for shared work.
type folding struct {
	chain    Chain
	operands [][]byte // by rank
}

// divide cuts a call into pieces if it is large enough for several ranks.
func (rv *rendezvous) divide(o *Operation) {
	rv.last, rv.met = rv.order[len(rv.order)-1], 0
	rv.slowest = rv.last
	size, bytes := len(rv.participants), o.Src.Bytes()
	switch o.Call.Kind {
	case KindAllReduce:
		if rv.working = size*bytes > alone; rv.working {
			rv.per = pieceLen(min(max(together/size, leastPiece), mostPiece), o.Src.dtype.Size())
			at := o.Src.arena
			rv.pieces = (at+o.Src.n-1)/rv.per - at/rv.per + 1
		}
	case KindAllGather:
		if rv.working = size*size*bytes > alone; rv.working {
			rv.pieces = size // a piece fills one rank's Dst
		}
	}
	if rv.working {
		rv.met = time.Since(origin)
		rv.claimed.Store(0)
		rv.done.Store(0)
	}
}

// pieceLen returns the length of a piece of about the given number of bytes, in
// elements. It divides the length of a block or is a multiple of it.
func pieceLen(bytes, width int) int {
	n := schedule.BlockLen
	for n*width > bytes {
		n /= 2
	}
	for 2*n*width <= bytes {
		n *= 2
	}
	return n
}

// wakeHelpers makes the ranks that arrived just before the last help: they still
// poll, or have not slept for long.
func (rv *rendezvous) wakeHelpers() {
	helpers := min(runtime.GOMAXPROCS(0), int(rv.pieces), len(rv.participants)) - 1
	for i := range helpers {
		rv.participants[rv.order[len(rv.order)-2-i]].become(helping)
	}
}

// work claims and completes pieces until none is left.
func (l *local) work() {
	rv := &l.hub.rendezvous
	o := rv.participants[l.rank].o
	for {
		k := int(rv.claimed.Add(1) - 1)
		if k >= rv.pieces {
			return
		}
		if o.Call.Kind == KindAllGather {
			l.gatherInto(k, o)
		} else {
			at := o.Src.arena
			first := at / rv.per * rv.per
			l.fold(o, max(first+k*rv.per-at, 0), min(first+(k+1)*rv.per-at, o.Src.n))
		}
		l.pieceDone()
	}
}

// pieceDone counts a finished piece; waking helpers counts as one more. The rank
// that finishes last ends the round.
func (l *local) pieceDone() {
	h, rv := l.hub, &l.hub.rendezvous
	if rv.done.Add(1) <= int64(rv.pieces) {
		return
	}
	h.mu.Lock()
	rv.slowest = l.rank
	rv.end()
	h.mu.Unlock()
	rv.release(-1)
}

// workAlone carries out the whole call in this goroutine. The hub's mutex is
// held.
func (l *local) workAlone(o *Operation) {
	switch o.Call.Kind {
	case KindAllReduce:
		l.fold(o, 0, o.Src.n)
	case KindBarrier:
	default:
		rv := &l.hub.rendezvous
		for r := range rv.participants {
			rv.participants[r].o.Finish(r, rv.src, &l.chain)
		}
	}
}

// fold reduces the elements [lo, hi) of all ranks' Src into every rank's Dst.
func (l *local) fold(o *Operation, lo, hi int) {
	rv, width := &l.hub.rendezvous, o.Src.dtype.Size()
	a, z := lo*width, hi*width
	l.operands = l.operands[:0]
	for _, src := range rv.src {
		l.operands = append(l.operands, src[a:z])
	}
	mine := rv.dst[l.rank][a:z]
	l.chain.Range(o.Call.DType, o.Call.Op, o.Src.arena+lo, mine, l.operands)
	for r, dst := range rv.dst {
		if r != l.rank {
			copy(dst[a:z], mine)
		}
	}
}

// gatherInto fills the Dst of rank to. A rank's Src may already be its piece of
// that Dst. It is then not written, because other ranks may read it at the same
// time.
func (l *local) gatherInto(to int, o *Operation) {
	rv, each := &l.hub.rendezvous, o.Src.Bytes()
	if each == 0 {
		return
	}
	for r, src := range rv.src {
		piece := rv.dst[to][r*each : (r+1)*each]
		if &piece[0] != &src[0] {
			copy(piece, src)
		}
	}
}
