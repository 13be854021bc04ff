package collective

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// shared is the work of a round for which all have come, in pieces that are
// taken by whoever is free: which rank folds what does not show in the bits. It
// does not change while it is done, but for the counts.
type shared struct {
	working bool // some ranks are at it
	pieces  int
	per     int           // elements of the arena in a piece of an AllReduce, but the first and the last
	last    int           // who came last
	slowest int           // who was done last
	met     time.Duration // after origin, when all had come; 0: not long before the end

	taken, done atomic.Int64 // pieces
}

// Limits of pieces, in bytes.
const (
	alone      = 32 << 10 // this much of all vectors together takes less time than to have others help
	together   = 1 << 20  // of all vectors, which stay in a core's cache
	leastPiece = 4 << 10  // of one of them
	mostPiece  = 32 << 10
)

// folding is what a rank keeps for work.
type folding struct {
	chain    Chain
	operands [][]byte // by rank
}

// share cuts a call into pieces, if there is enough for several ranks.
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
			b.pieces = size // what one rank gets
		}
	}
	if b.working {
		b.met = time.Since(origin)
		b.taken.Store(0)
		b.done.Store(0)
	}
}

// pieceLen is a part of a block, or several blocks, of about so many bytes.
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

// enlist has those who came just before the last help: they look still, or have
// not slept for long.
func (b *board) enlist() {
	helpers := min(runtime.GOMAXPROCS(0), int(b.pieces), len(b.seats)) - 1
	for i := range helpers {
		b.seats[b.order[len(b.order)-2-i]].become(helping)
	}
}

// work does pieces until there are none.
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

// did counts a piece, and the enlisting as one more. Who does the last ends the
// round.
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

// workAlone does all of it.
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

// fold leaves in every rank's Dst the reduction of the elements [lo, hi).
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

// gather fills the Dst of rank to. Where a rank's Src is its place there it is
// left alone: others may read it at the same time.
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
