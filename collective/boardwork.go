package collective

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// shared is the work of a round in which all ranks have arrived. It is cut into
// pieces that any free rank takes. The result has the same bits whichever rank
// folds a piece. Only the counters change while the ranks work.
type shared struct {
	working bool // ranks are taking pieces
	pieces  int
	per     int           // elements per piece of an AllReduce; the first and last piece may have fewer
	last    int           // the rank that arrived last
	slowest int           // the rank that finished last
	met     time.Duration // when all had arrived, after origin; 0 if the last rank carried out the call alone

	taken, done atomic.Int64 // pieces
}

// Limits of pieces, in bytes.
const (
	alone      = 32 << 10 // up to this much of all vectors together, one rank is faster alone
	together   = 1 << 20  // of all vectors together per piece, to stay in a core's cache
	leastPiece = 4 << 10  // of one vector per piece
	mostPiece  = 32 << 10
)

// folding is the memory that a rank reuses for its work at the board.
type folding struct {
	chain    Chain
	operands [][]byte // by rank
}

// share cuts a call into pieces if it is large enough for several ranks.
func (b *board) share(o *Operation) {
	b.last, b.met = b.order[len(b.order)-1], 0
	b.slowest = b.last
	size, bytes := len(b.seats), o.Src.Bytes()
	switch o.Call.Kind {
	case KindAllReduce:
		if b.working = size*bytes > alone; b.working {
			b.per = pieceLen(min(max(together/size, leastPiece), mostPiece), o.Src.dtype.Size())
			at := o.Src.arena
			b.pieces = (at+o.Src.n-1)/b.per - at/b.per + 1
		}
	case KindAllGather:
		if b.working = size*size*bytes > alone; b.working {
			b.pieces = size // a piece fills one rank's Dst
		}
	}
	if b.working {
		b.met = time.Since(origin)
		b.taken.Store(0)
		b.done.Store(0)
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

// enlist sets those ranks to work that arrived just before the last: they still
// poll, or have not slept for long.
func (b *board) enlist() {
	helpers := min(runtime.GOMAXPROCS(0), int(b.pieces), len(b.seats)) - 1
	for i := range helpers {
		b.seats[b.order[len(b.order)-2-i]].become(helping)
	}
}

// work takes and completes pieces until none is left.
func (l *local) work() {
	b := &l.hub.board
	o := b.seats[l.rank].o
	for {
		k := int(b.taken.Add(1) - 1)
		if k >= b.pieces {
			return
		}
		if o.Call.Kind == KindAllGather {
			l.gather(k, o)
		} else {
			at := o.Src.arena
			first := at / b.per * b.per
			l.fold(o, max(first+k*b.per-at, 0), min(first+(k+1)*b.per-at, o.Src.n))
		}
		l.did()
	}
}

// did counts a finished piece; enlisting helpers counts as one more. The rank
// that finishes last ends the round.
func (l *local) did() {
	h, b := l.hub, &l.hub.board
	if b.done.Add(1) <= int64(b.pieces) {
		return
	}
	h.mu.Lock()
	b.slowest = l.rank
	b.end()
	h.mu.Unlock()
	b.release(-1)
}

// workAlone carries out the whole call in this goroutine. The hub's mutex is
// held.
func (l *local) workAlone(o *Operation) {
	switch o.Call.Kind {
	case KindAllReduce:
		l.fold(o, 0, o.Src.n)
	case KindAllGather:
		for r := range l.hub.size {
			l.gather(r, o)
		}
	}
}

// fold reduces the elements [lo, hi) of all ranks' Src into every rank's Dst.
func (l *local) fold(o *Operation, lo, hi int) {
	b, width := &l.hub.board, o.Src.dtype.Size()
	a, z := lo*width, hi*width
	l.operands = l.operands[:0]
	for _, src := range b.src {
		l.operands = append(l.operands, src[a:z])
	}
	mine := b.dst[l.rank][a:z]
	l.chain.Range(o.Call.DType, o.Call.Op, o.Src.arena+lo, mine, l.operands)
	for r, dst := range b.dst {
		if r != l.rank {
			copy(dst[a:z], mine)
		}
	}
}

// gather fills the Dst of rank to. A rank's Src may already be its own place in
// that Dst. It is then not written, because other ranks may read it at the same
// time.
func (l *local) gather(to int, o *Operation) {
	b, each := &l.hub.board, o.Src.Bytes()
	if each == 0 {
		return
	}
	for r, src := range b.src {
		piece := b.dst[to][r*each : (r+1)*each]
		if &piece[0] != &src[0] {
			copy(piece, src)
		}
	}
}
