package bench

import (
	"container/heap"
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// A Fabric is what connects the nodes of a simulation: each has one full-duplex link to a
// switch that is never the bottleneck. The model is that of LogGP (Alexandrov and others,
// 1995) with links on which messages queue.
type Fabric struct {
	Rate    float64       `json:"bits_per_second"` // of a link, in each direction
	Latency time.Duration `json:"latency_ns"`      // of a message, besides the time of its bytes
	Message time.Duration `json:"message_ns"`      // processor time for a message, at each end
	PerByte float64       `json:"byte_ns"`         // processor time for a byte of it, at each end
	Cores   int           `json:"cores"`           // that all nodes share, as namespaces of one machine do; 0: none

	spent *float64 // sums the processor time of all messages; nil to skip that
}

// cost is what the planner of n nodes knows of their links.
func (f Fabric) cost(n int) schedule.Cost {
	slow := f.slowdown(n)
	return schedule.Cost{
		Latency: float64(f.Latency) + 2*slow*float64(f.Message),
		PerByte: f.wire(1) + 2*slow*f.PerByte,
		Fold:    schedule.Network.Fold,
	}
}

// slowdown is how many nodes share a core.
func (f Fabric) slowdown(n int) float64 {
	if f.Cores == 0 {
		return 1
	}
	return max(1, float64(n)/float64(f.Cores))
}

// wire is the time that bytes take on a link, in nanoseconds.
func (f Fabric) wire(bytes int) float64 { return float64(bytes) * 8e9 / f.Rate }

// carry returns how long the nodes take to make their moves, in nanoseconds. moves has
// those of each node, whose elements are of 4 bytes. If one node stands for all, slow is the
// factor by which its processor is slower than alone.
//
// A node makes one move at a time. A message leaves when the link is free, up to
// schedule.Outstanding at a time, and arrives when the receiver's link has carried it too.
func (f Fabric) carry(moves [][]schedule.Move, slow float64) float64 {
	c := newCarrier(f, moves, slow)
	for len(c.ready) > 0 {
		c.advance()
	}
	end := 0.
	for _, n := range c.nodes {
		end = max(end, n.now, n.up)
	}
	return end
}

// A carrier is a call in virtual time. It is a heap of the nodes that can move, by time.
type carrier struct {
	Fabric
	slow  float64
	cores []float64 // when each is free; nil if every node has its own
	nodes []simulated
	ready []int
	woken int // node that the move has sent what it waits for, or -1
}

// A simulated node. Times are in nanoseconds.
type simulated struct {
	moves    []schedule.Move // left to make
	now      float64
	up, down float64                       // when the link is free
	left     [schedule.Outstanding]float64 // when the last messages left
	sends    int
	inbox    map[int][]float64 // arrivals of messages not yet received, by sender
	waits    int               // sender that the node waits for, or -1
}

func newCarrier(f Fabric, moves [][]schedule.Move, slow float64) *carrier {
	c := &carrier{Fabric: f, slow: slow, woken: -1, nodes: make([]simulated, len(moves))}
	if f.Cores > 0 && len(moves) > 1 {
		c.slow, c.cores = 1, make([]float64, f.Cores)
	}
	for i := range moves {
		c.nodes[i] = simulated{moves: moves[i], waits: -1}
		c.ready = append(c.ready, i)
	}
	return c
}

func (c *carrier) Len() int           { return len(c.ready) }
func (c *carrier) Less(a, b int) bool { return c.nodes[c.ready[a]].now < c.nodes[c.ready[b]].now }
func (c *carrier) Swap(a, b int)      { c.ready[a], c.ready[b] = c.ready[b], c.ready[a] }
func (c *carrier) Push(x any)         { c.ready = append(c.ready, x.(int)) }
func (c *carrier) Pop() any {
	last := c.ready[len(c.ready)-1]
	c.ready = c.ready[:len(c.ready)-1]
	return last
}

// advance makes the next move of the node that is first.
func (c *carrier) advance() {
	i := c.ready[0]
	n := &c.nodes[i]
	if len(n.moves) == 0 {
		heap.Pop(c)
		return
	}
	m := n.moves[0]
	begin := n.now // of the move
	switch arrivals := n.inbox[m.Peer]; {
	case m.Act == schedule.Send:
		begin = n.left[n.sends%len(n.left)]
	case m.Act != schedule.Finish && len(arrivals) == 0:
		n.waits = m.Peer
		heap.Pop(c)
		return
	case m.Act != schedule.Finish:
		begin = arrivals[0]
	}
	if begin > n.now { // others can use the cores until then
		n.now = begin
		heap.Fix(c, 0)
		return
	}
	switch n.moves = n.moves[1:]; m.Act {
	case schedule.Send:
		c.send(i, m)
	case schedule.Keep, schedule.Combine:
		c.receive(n, m)
	}
	heap.Fix(c, 0)
	if c.woken >= 0 {
		heap.Push(c, c.woken)
		c.woken = -1
	}
}

func (c *carrier) send(from int, m schedule.Move) {
	n, bytes := &c.nodes[from], collective.HeaderSize+4*(m.Hi-m.Lo)
	slot := &n.left[n.sends%len(n.left)]
	c.work(n, c.handling(bytes))
	start := max(n.now, n.up)
	n.up = start + c.wire(bytes)
	*slot = n.up
	n.sends++
	to := &c.nodes[m.Peer]
	to.down = max(to.down, start+float64(c.Latency)) + c.wire(bytes)
	if to.inbox == nil {
		to.inbox = map[int][]float64{}
	}
	to.inbox[from] = append(to.inbox[from], to.down)
	if to.waits == from {
		to.waits, c.woken = -1, m.Peer
	}
}

// receive takes a message that has arrived.
func (c *carrier) receive(n *simulated, m schedule.Move) {
	bytes := 4 * (m.Hi - m.Lo)
	took := c.handling(collective.HeaderSize + bytes)
	if m.Act == schedule.Combine {
		took += schedule.Network.Fold * float64(bytes)
	}
	c.work(n, took)
	arrivals := n.inbox[m.Peer]
	if n.inbox[m.Peer] = arrivals[1:]; len(arrivals) == 1 {
		delete(n.inbox, m.Peer)
	}
}

// handling is the processor time of a message at one end.
func (c *carrier) handling(bytes int) float64 { return float64(c.Message) + c.PerByte*float64(bytes) }

// work lets a node compute, on the core that is free first.
func (c *carrier) work(n *simulated, took float64) {
	if c.spent != nil {
		*c.spent += took
	}
	if c.cores == nil {
		n.now += c.slow * took
		return
	}
	core := &c.cores[slices.Index(c.cores, slices.Min(c.cores))]
	n.now = max(n.now, *core) + took
	*core = n.now
}
