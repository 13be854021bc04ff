package schedule_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

var anyOrder = []schedule.Method{schedule.Halving, schedule.Tree, schedule.Hierarchical}

// layouts returns some distributions of size ranks over hosts.
func layouts(size int) map[string][]int {
	every := map[string][]int{}
	spread := func(name string, host func(rank int) int) {
		hosts := make([]int, size)
		for r := range hosts {
			hosts[r] = host(r)
		}
		every[name] = hosts
	}
	spread("one host", func(int) int { return 0 })
	spread("a host each", func(r int) int { return r })
	spread("pairs", func(r int) int { return r / 2 })
	spread("in turn", func(r int) int { return r % 3 })
	spread("uneven", func(r int) int { return min(r*r/8, 5) })
	return every
}

// A machine makes the moves of all ranks on symbols. For each element of each
// rank, it counts how often each rank's operand is included. A message is read
// from the sender's vector as late as possible, when it is received. So a result
// shows if an element was overwritten before it was sent.
type machine struct {
	size, count int
	moves       [][]schedule.Move // still to be made, by rank
	held        [][][]int         // [rank][element][operand]
	away        [][]schedule.Move // sent and not yet received, in order
	finished    []int             // by element
}

func start(t require.TestingT, m schedule.Method, hosts []int, count, segment int) *machine {
	p := &machine{size: len(hosts), count: count, finished: make([]int, count)}
	for r := range p.size {
		moves := schedule.Plan{Method: m, Segment: segment}.Moves(nil, r, hosts, count)
		for _, mv := range moves {
			inside := 0 <= mv.Lo && mv.Lo <= mv.Hi && mv.Hi <= count
			sound := mv.Act == schedule.Finish || mv.Hi-mv.Lo <= segment && mv.Peer != r
			if !inside || !sound {
				require.Fail(t, "impossible move", "rank %d: %+v", r, mv)
			}
		}
		held := make([][]int, count)
		for e := range held {
			held[e] = make([]int, p.size)
			held[e][r] = 1
		}
		p.moves, p.held, p.away = append(p.moves, moves), append(p.held, held), append(p.away, nil)
	}
	return p
}

// step makes the next move of a rank if it can be made.
func (p *machine) step(t require.TestingT, rank int) bool {
	if len(p.moves[rank]) == 0 {
		return false
	}
	m := p.moves[rank][0]
	switch m.Act {
	case schedule.Send:
		if len(p.away[rank]) == schedule.Outstanding {
			return false
		}
		p.away[rank] = append(p.away[rank], m)
	case schedule.Finish:
		for e := m.Lo; e < m.Hi; e++ {
			p.complete(t, rank, e)
			p.finished[e]++
		}
	default:
		// Messages leave in order, each when it is received.
		if out := p.away[m.Peer]; len(out) == 0 || out[0].Peer != rank {
			return false
		}
		sent := p.away[m.Peer][0]
		if sent.Lo != m.Lo || sent.Hi != m.Hi {
			require.Fail(t, "wrong elements", "rank %d sent %+v, rank %d expects %+v", m.Peer, sent, rank, m)
		}
		p.away[m.Peer] = p.away[m.Peer][1:]
		for e := m.Lo; e < m.Hi; e++ {
			for r, times := range p.held[m.Peer][e] {
				if m.Act == schedule.Keep {
					p.held[rank][e][r] = 0
				}
				p.held[rank][e][r] += times
			}
		}
	}
	p.moves[rank] = p.moves[rank][1:]
	return true
}

// complete checks that an element has every rank's operand exactly once.
func (p *machine) complete(t require.TestingT, rank, e int) {
	for r, times := range p.held[rank][e] {
		if times != 1 {
			require.Fail(t, "operand not included exactly once", "operand of rank %d: %d times in element %d of rank %d", r, times, e, rank)
		}
	}
}

// play makes all moves. pick chooses among the ranks whose next move is possible.
func (p *machine) play(t require.TestingT, pick func() int) {
	for {
		first := pick()
		moved := false
		for i := range p.size {
			if p.step(t, (first+i)%p.size) {
				moved = true
				break
			}
		}
		if !moved {
			break
		}
	}
	for r := range p.size {
		if len(p.moves[r])+len(p.away[r]) > 0 {
			require.Fail(t, "deadlock", "rank %d: moves left %v, messages not received %v", r, p.moves[r], p.away[r])
		}
		for e := range p.count {
			p.complete(t, r, e)
		}
	}
	for e, times := range p.finished {
		if times != 1 {
			require.Fail(t, "not finished exactly once", "element %d: %d times", e, times)
		}
	}
}

// Every rank gets every operand of every element exactly once. There is no
// deadlock, even if a message leaves only when it is received. No element is
// overwritten before it has been sent.
func TestMovesReduce(t *testing.T) {
	for _, m := range anyOrder {
		t.Run(m.String(), func(t *testing.T) {
			for size := 1; size <= 17; size++ {
				for name, hosts := range layouts(size) {
					for _, count := range []int{0, 1, size - 1, 37} {
						for _, segment := range []int{1, 4, 1000} {
							at := 0
							what := fmt.Sprintf("size %d, %s, %d elements by %d", size, name, count, segment)
							start(named{t, what}, m, hosts, count, segment).play(named{t, what}, func() int { at++; return at })
						}
					}
				}
			}
		})
	}
}

// named adds the name of the case to failures.
type named struct {
	*testing.T
	what string
}

// Errorf is part of require.TestingT.
func (n named) Errorf(format string, args ...any) {
	n.T.Helper()
	n.T.Errorf(n.what+": "+format, args...)
}

// The result does not depend on which rank is slow.
func TestMovesInAnyPace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 9).Draw(t, "size")
		hosts := rapid.SliceOfN(rapid.IntRange(0, 3), size, size).Draw(t, "hosts")
		m := rapid.SampledFrom(anyOrder).Draw(t, "method")
		count := rapid.IntRange(0, 60).Draw(t, "count")
		segment := rapid.IntRange(1, 20).Draw(t, "segment")
		favoured := rapid.SliceOfN(rapid.IntRange(0, size-1), 1, 50).Draw(t, "favoured")
		at := 0
		start(t, m, hosts, count, segment).play(t, func() int { at++; return favoured[at%len(favoured)] })
	})
}

// Ranks receive from as many ranks, and as many elements, as the algorithms
// promise: halving and hierarchy move the least through each rank, and in a tree a
// rank has at most two children.
func TestMovesMoveTheLeast(t *testing.T) {
	const count = 1 << 12
	received := func(m schedule.Method, rank int, hosts []int, far bool) (elements int, from map[int]bool) {
		from = map[int]bool{}
		for _, mv := range (schedule.Plan{Method: m, Segment: 64}).Moves(nil, rank, hosts, count) {
			if (mv.Act == schedule.Keep || mv.Act == schedule.Combine) && (!far || hosts[mv.Peer] != hosts[rank]) {
				elements += mv.Hi - mv.Lo
				from[mv.Peer] = true
			}
		}
		return elements, from
	}
	for _, size := range []int{2, 4, 8, 16} {
		for rank := range size {
			n, from := received(schedule.Halving, rank, make([]int, size), false)
			require.Equal(t, 2*count*(size-1)/size, n)
			require.Len(t, from, Log2(size), "partners")
		}
	}
	for size := 2; size <= 17; size++ {
		for rank := range size {
			n, from := received(schedule.Tree, rank, make([]int, size), false)
			require.LessOrEqual(t, n, 2*count, "size %d rank %d", size, rank)
			require.LessOrEqual(t, len(from), 4)
		}
	}
	// 4 hosts of 4 ranks: a host receives as much from others as a rank in a ring of
	// 4, once for all its ranks.
	hosts := make([]int, 16)
	for r := range hosts {
		hosts[r] = r / 4
	}
	total := 0
	for rank := range 4 {
		n, _ := received(schedule.Hierarchical, rank, hosts, true)
		total += n
	}
	require.Equal(t, 2*count*3/4, total)
}

// Log2 returns the logarithm of a power of two.
func Log2(n int) int { return len(fmt.Sprintf("%b", n)) - 1 }
