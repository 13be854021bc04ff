package collective

import (
	"bytes"
	"context"
	"time"

	"github.com/ringtrain/ringtrain/collective/fold"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// A linkMeter makes the calls that measure links.
type linkMeter struct {
	e     *HostEngine
	ctx   context.Context // of one MeasureLinks
	group uint32          // the engine's own
	seq   uint64
	began time.Time // when the measurement began

	// New memory would need new pages, or a garbage collection, during calls. So all calls use this.
	now   [2]Operation // in progress
	times [2]float64   // see slowest

	vector []float32 // of calls, and what messages arrive in
	source []float32 // of vectors and messages; smaller calls read the rest of it as weights
	filled int       // elements of the source
}

// newLinkMeter makes the engine's calls those of linkGroup, until end.
func newLinkMeter(ctx context.Context, e *HostEngine) *linkMeter {
	m := &linkMeter{e: e, ctx: ctx, group: e.group}
	e.group = linkGroup
	return m
}

// end leaves the engine as if there had been no calls.
func (m *linkMeter) end() {
	e := m.e
	e.group = m.group
	e.contextWatch.forget() // ctx may end before the group's first call
	e.messages, e.payload, e.reduced, e.readInAll = 0, 0, 0, 0
}

// When the searches inside hosts and between them end, from the beginning of the measurement.
const (
	nearBound = schedule.LinkBound / 5
	farBound  = schedule.LinkBound * 3 / 5
)

// mostUsed is how many elements of the source a vector and the weights may take together, 8 MB.
// Longer vectors overlap their weights: they displace each other from caches anyway, and new memory
// takes longer than a call.
const mostUsed = 2 << 20

// measure fills in what it measures: links inside hosts, if any ranks use them, links
// between hosts, and calls.
func (m *linkMeter) measure(found *schedule.Links) (err error) {
	s := &m.e.situation
	search := schedule.NewCallSearch(s)
	most := max(schedule.MostTrial, search.Largest())
	// Memory comes first, because the garbage collector may run now and disturb what is timed.
	m.allocate(most/4, max(most/4, mostUsed))
	if err = m.most([]float64{0}); err != nil { // waits for all ranks
		return err
	}
	m.began = time.Now()
	if !s.Shared {
		if schedule.Crowded(s.Hosts) {
			if found.Near, err = m.links(nearBound, true); err != nil {
				return err
			}
		}
		if !s.OneHost() {
			if found.Far, err = m.links(farBound, false); err != nil {
				return err
			}
		}
	}
	if found.Calls, err = m.calls(search); err == nil && !s.Shared && !s.OneHost() {
		found.Correct(s.Hosts)
	}
	return err
}

// links measures the links inside hosts, or those of the ring of all ranks.
func (m *linkMeter) links(bound time.Duration, inside bool) (schedule.Cost, error) {
	to, from := schedule.Up(m.e.rank, m.e.size), schedule.Down(m.e.rank, m.e.size)
	if inside {
		to, from = schedule.Neighbours(m.e.rank, m.e.situation.Hosts)
	}
	s := schedule.NewLinkSearch(bound)
	elapsed := time.Duration(0)
	for {
		bytes, more := s.Next(elapsed)
		if !more {
			return s.Cost(), nil
		}
		took, err := m.exchange(bytes, to, from)
		if err == nil {
			took, elapsed, err = m.slowest(took)
		}
		if err != nil {
			return schedule.Cost{}, err
		}
		s.Measured(took, elapsed)
	}
}

// exchange sends to one rank and receives from another. A rank may have no others. It returns
// how long the messages that count took.
func (m *linkMeter) exchange(bytes, to, from int) (time.Duration, error) {
	uncounted, counted := schedule.Messages(bytes)-1, 1
	if bytes == 0 {
		counted, bytes = schedule.LatencyRounds, 8
	}
	out, in := Of(m.source).bytes()[:bytes], Of(m.vector).bytes()[:bytes]
	began := time.Now()
	for i := range uncounted + counted {
		if i == uncounted {
			began = time.Now()
		}
		m.seq++
		if to == m.e.rank {
			continue
		}
		for i, h := range [...]half{{v: Of(out), from: m.e.rank, to: to}, {v: Of(in), from: from, to: m.e.rank}} {
			m.prepare(i, h.call(), h.v)
		}
		if err := m.call(2); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// calls times calls of the group.
func (m *linkMeter) calls(s *schedule.CallSearch) ([]schedule.Sample, error) {
	_, elapsed, err := m.slowest(0)
	for err == nil {
		bytes, way, more := s.Next(elapsed)
		if !more {
			return s.Samples(), nil
		}
		var took time.Duration
		if took, elapsed, err = m.timed(bytes, way); err == nil {
			s.Measured(took)
		}
	}
	return nil, err
}

// confirm reports whether calls still take as long as they did.
func (m *linkMeter) confirm(known *schedule.Links) (bool, error) {
	for _, probe := range known.Probes() {
		took, err := m.fastest(probe.Bytes)
		if err != nil || !probe.Confirms(took) {
			return false, err
		}
	}
	return true, nil
}

// fastest returns the shortest time of several calls. The first ones are slow, because memory is
// new and ranks may share a core.
func (m *linkMeter) fastest(bytes int) (least time.Duration, err error) {
	spent := time.Duration(0)
	for i := 0; i < schedule.LeastProbes || i < schedule.MostProbes && spent < schedule.ProbeBound; i++ {
		took, _, err := m.timed(bytes, schedule.Rival{})
		if err != nil {
			return 0, err
		}
		if spent += took; i == 0 || took < least {
			least = took
		}
	}
	return least, nil
}

// timed makes a call as training does: the vector has just been written from other memory, and
// a rank that is done reads the result and as many weights while others may still need its core
// and its caches. It returns the time that the call took on the slowest rank, and the time since
// rank 0 began. The zero way is the planned one.
func (m *linkMeter) timed(size int, way schedule.Rival) (took, elapsed time.Duration, err error) {
	n := size / 4
	if len(m.vector) < n {
		m.allocate(n, 2*n)
	}
	used := max(n, min(2*n, mostUsed, len(m.source)))
	for ; m.filled < used; m.filled++ {
		m.source[m.filled] = 1 // otherwise all of it would be the same page of zeros, in a cache
	}
	v := Of(m.vector[:n])
	fold.Copy(v.bytes(), Of(m.source[:n]).bytes())
	m.seq++
	m.prepare(0, Call{Kind: KindBarrier}, Vector{device: -1})
	if err := m.call(1); err != nil {
		return 0, 0, err
	}
	m.e.situation.Try = way
	began := time.Now()
	err = m.reduce(v, Sum)
	took = time.Since(began)
	m.e.situation.Try = schedule.Rival{}
	if err != nil {
		return 0, 0, err
	}
	weights := m.source[used-n:][:n]
	for _, read := range [...][]byte{v.bytes(), Of(weights).bytes()} {
		bytes.Count(read, []byte{1}) // reads all
	}
	return m.slowest(took)
}

// allocate makes a vector and a source with these numbers of elements. Unused pages cost nothing.
func (m *linkMeter) allocate(vector, source int) {
	room := make([]float32, vector+source) // one object: each may start a garbage collection
	m.vector, m.source, m.filled = room[:vector:vector], room[vector:], 0
}

// slowest returns the longest time of any rank, and the time since rank 0 began.
func (m *linkMeter) slowest(took time.Duration) (longest, elapsed time.Duration, err error) {
	m.times = [2]float64{float64(took), 0}
	if m.e.rank == 0 {
		m.times[1] = float64(time.Since(m.began))
	}
	err = m.most(m.times[:])
	return time.Duration(m.times[0]), time.Duration(m.times[1]), err
}

// most replaces the numbers by the maxima of all ranks.
func (m *linkMeter) most(numbers []float64) error { return m.reduce(Of(numbers), Max) }

// reduce is an AllReduce.
func (m *linkMeter) reduce(v Vector, op Op) error {
	m.seq++
	m.prepare(0, Call{Kind: KindAllReduce, DType: v.dtype, Op: op, Count: uint64(v.n)}, v)
	return m.call(1)
}

// prepare makes operation i of now a call on v.
func (m *linkMeter) prepare(i int, c Call, v Vector) { m.now[i].set(m.seq, 0, &c, &v, &v) }

// call carries out the first n operations of now together.
func (m *linkMeter) call(n int) error {
	for i := range n {
		if err := m.e.Start(&m.now[i]); err != nil {
			return err
		}
	}
	return m.e.Wait(m.ctx)
}
