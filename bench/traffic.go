package bench

import (
	"maps"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// HeaderBytes is the size of the header of every message.
const HeaderBytes = 64

// Traffic counts what a rank sends. It observes the calls of a group and derives their
// messages, with headers, from their schedules. It does not know about encryption,
// packets or heartbeats. It is safe for concurrent use, and the zero value is ready.
type Traffic struct {
	mu    sync.Mutex
	calls map[collective.Call]int64
}

var _ collective.Observer = (*Traffic)(nil)

// Called implements collective.Observer.
func (t *Traffic) Called(c collective.Call, _, _ uint64, _ time.Duration, err error) {
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil {
		t.calls = map[collective.Call]int64{}
	}
	t.calls[c]++
}

// Reset forgets the calls so far.
func (t *Traffic) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls = nil
}

// Sent returns the bytes that this rank has sent in the calls so far, all of which must
// be those of a group of v. known is false if there were calls whose messages it cannot
// derive. It can for AllReduce, AllGather, Broadcast and Barrier.
func (t *Traffic) Sent(v collective.View) (sent int64, known bool) {
	t.mu.Lock()
	calls := maps.Clone(t.calls)
	t.mu.Unlock()
	known = true
	for c, times := range calls {
		n, ok := sentBy(c, v)
		known = known && ok
		sent += n * times
	}
	return sent, known
}

// sentBy returns the bytes that one rank sends in a call.
func sentBy(c collective.Call, v collective.View) (sent int64, known bool) {
	rank, size, width := v.Self, v.Size(), c.DType.Size()
	m := &messages{}
	if size == 1 {
		return 0, true
	}
	switch c.Kind {
	case collective.KindBarrier:
		m.add(0, schedule.Rounds(size))
	case collective.KindAllReduce:
		m.allReduce(c, rank, size, near(v))
	case collective.KindAllGather:
		plan := schedule.PlanGather(size, int(c.Count), width, near(v))
		if plan.Method == schedule.Collected {
			m.collected(rank, size, int(c.Count)*width, size*int(c.Count)*width)
			break
		}
		if plan.Method == schedule.Bruck {
			m.told(size, int(c.Count)*width)
			break
		}
		m.cut(int(c.Count)*width, plan.Segment*width, size-1) // once to all others, or size-1 pieces to the next rank
	case collective.KindBroadcast:
		m.broadcast(c, rank, size)
	default:
		return 0, false
	}
	return m.bytes, true
}

// messages adds up the bytes of messages.
type messages struct{ bytes int64 }

func (m *messages) add(payload, times int) { m.bytes += int64(times) * int64(payload+HeaderBytes) }

// cut adds n bytes in messages of at most per bytes, sent the given number of times.
func (m *messages) cut(n, per, times int) {
	m.bytes += int64(times) * int64(n+HeaderBytes*max(1, (n+per-1)/per))
}

// collected adds the empty message to the next rank, what a rank sends up the tree
// (each bytes for itself and every rank below it), and the result that it sends down.
func (m *messages) collected(rank, size, each, result int) {
	m.add(0, 1)
	if rank != 0 {
		m.add(each*(schedule.Through(rank, size)-rank), 1)
	}
	m.add(result, schedule.Children(rank, size))
}

// told adds what a rank forwards in Bruck's algorithm, each bytes of every rank.
func (m *messages) told(size, each int) {
	for i := range schedule.Rounds(size) {
		m.add(each*schedule.Told(size, i), 1)
	}
}

func (m *messages) allReduce(c collective.Call, rank, size int, near bool) {
	n, width := int(c.Count), c.DType.Size()
	partial := c.DType == collective.Float32 || c.DType == collective.Float64 || width != 2 && c.Op != collective.Mean
	plan := schedule.PlanReduce(size, n, width, near, partial)
	blocks := plan.Segment / schedule.BlockLen
	chunk := func(residue, times int) {
		k := schedule.Chunk{Offset: int(c.Offset), Len: n, Residue: residue, Size: size}
		bytes := 0
		for b := range k.Blocks() {
			lo, hi := k.Block(b)
			bytes += (hi - lo) * width
		}
		m.bytes += int64(times) * int64(bytes+HeaderBytes*k.Segments(blocks))
	}
	switch plan.Method {
	case schedule.OneShot:
		m.add(n*width, size-1)
	case schedule.Bruck:
		m.told(size, n*width)
	case schedule.Collected:
		m.collected(rank, size, n*width, n*width)
	case schedule.Ring:
		for i := range schedule.RingSteps(size) {
			chunk(schedule.RingStep(rank, size, i).Send, 1)
		}
	default: // direct: a chunk to each owner, and our own chunk to all
		for r := range size {
			if r != rank {
				chunk(r, 1)
			}
		}
		chunk(rank, size-1)
	}
}

func (m *messages) broadcast(c collective.Call, rank, size int) {
	n, width, root := int(c.Count), c.DType.Size(), int(c.Root)
	m.add(0, 1) // ranks compare calls first
	plan := schedule.PlanBroadcast(size, n, width)
	switch {
	case plan.Method == schedule.Star:
		if rank == root {
			m.add(n*width, size-1)
		}
	case schedule.Up(rank, size) != root && n > 0:
		m.cut(n*width, plan.Segment*width, 1)
	}
}

// near reports whether all members are on one host, by package collective's rule: if
// hosts are unknown, the workers of one launcher are.
func near(v collective.View) bool {
	for _, m := range v.Members {
		first := v.Members[0]
		if m.Host != first.Host || m.Host == 0 && m.Node != first.Node {
			return false
		}
	}
	return true
}
