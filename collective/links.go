package collective

import (
	"context"
	"time"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// linkGroup is the group of the calls that measure links, in headers.
const linkGroup = ^uint32(0) - 1

// A LinkPolicy says what rank 0 knows about the links of a View.
type LinkPolicy struct {
	Known   schedule.Cost // from an earlier group of the same hosts; zero if none
	Measure bool          // measure them if they are not known
}

// Ways to tell the other ranks.
const (
	linksUnknown = iota // use the defaults
	linksKnown
	linksMeasured
)

// MeasureLinks makes the engine's plans use the cost of the links between its ranks:
// the one that rank 0 knows, or else a measured one. It takes about schedule.LinkBound
// or less. Every rank calls it before the first call of a group. What rank 0 passes
// counts. It returns the cost, for the next group; that is zero if ranks share memory, or
// nothing was measured. An error has broken the engine.
func (e *HostEngine) MeasureLinks(ctx context.Context, p LinkPolicy) (schedule.Cost, error) {
	if e.can.Reduce != nil || e.size < 2 {
		return schedule.Cost{}, nil
	}
	m := linkMeter{e: e, ctx: ctx, group: e.group}
	e.group = linkGroup
	defer m.end()
	does := make([]float64, 3)
	if e.rank == 0 {
		switch {
		case p.Known != (schedule.Cost{}):
			does[0], does[1], does[2] = linksKnown, p.Known.Latency, p.Known.PerByte
		case p.Measure:
			does[0] = linksMeasured
		}
	}
	if err := m.most(does); err != nil || does[0] == linksUnknown {
		return schedule.Cost{}, err
	}
	c := schedule.Cost{Latency: does[1], PerByte: does[2], Fold: schedule.Network.Fold}
	if does[0] == linksMeasured {
		var err error
		if c, err = m.search(); err != nil {
			return c, err
		}
	}
	if e.situation.OneHost() {
		e.situation.Near = c
	} else {
		e.situation.Far = c
	}
	return c, nil
}

// inheritLinks takes over what the links of the parent cost, as far as they are links of
// the same kind.
func (e *HostEngine) inheritLinks(parent *schedule.Situation) {
	e.situation.Far = parent.Far
	if parent.OneHost() && !parent.Shared {
		e.situation.Near = parent.Near
	}
}

// A linkMeter makes the calls that measure links.
type linkMeter struct {
	e     *HostEngine
	ctx   context.Context // of one MeasureLinks
	group uint32          // the engine's own
	seq   uint64

	out, in []byte
}

// end leaves the engine as if there had been no calls.
func (m *linkMeter) end() {
	m.e.group = m.group
	m.e.contextWatch.forget() // ctx may end before the group's first call
	m.e.messages, m.e.payload = 0, 0
}

// search makes all trials.
func (m *linkMeter) search() (schedule.Cost, error) {
	var s schedule.LinkSearch
	began, elapsed := time.Now(), time.Duration(0)
	for {
		bytes, more := s.Next(elapsed)
		if !more {
			return s.Cost(), nil
		}
		took, err := m.trial(bytes)
		if err != nil {
			return schedule.Cost{}, err
		}
		times := []float64{float64(took), 0}
		if m.e.rank == 0 {
			times[1] = float64(time.Since(began))
		}
		if err := m.most(times); err != nil {
			return schedule.Cost{}, err
		}
		elapsed = time.Duration(times[1])
		s.Measured(time.Duration(times[0]), elapsed)
	}
}

// trial sends to the next rank and receives from the one before.
func (m *linkMeter) trial(bytes int) (time.Duration, error) {
	rounds := 1
	if bytes == 0 {
		rounds, bytes = schedule.LatencyRounds, 8
	}
	if len(m.out) < bytes {
		m.out, m.in = make([]byte, bytes), make([]byte, bytes)
	}
	began := time.Now()
	for range rounds {
		m.seq++
		next, before := schedule.Up(m.e.rank, m.e.size), schedule.Down(m.e.rank, m.e.size)
		if err := m.call(m.half(m.out[:bytes], m.e.rank, next), m.half(m.in[:bytes], before, m.e.rank)); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

func (m *linkMeter) half(b []byte, from, to int) *Operation {
	h := half{v: Of(b), from: from, to: to}
	return &Operation{Header: Header{Seq: m.seq, Call: h.call()}, Dst: h.v, Src: h.v}
}

// most replaces the numbers by the maxima of all ranks.
func (m *linkMeter) most(numbers []float64) error {
	m.seq++
	v := Of(numbers)
	call := Call{Kind: KindAllReduce, DType: Float64, Op: Max, Count: uint64(len(numbers))}
	return m.call(&Operation{Header: Header{Seq: m.seq, Call: call}, Dst: v, Src: v})
}

// call carries out operations together.
func (m *linkMeter) call(all ...*Operation) error {
	for _, o := range all {
		if err := m.e.Start(o); err != nil {
			return err
		}
	}
	return m.e.Wait(m.ctx)
}
