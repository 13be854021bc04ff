package collective

import (
	"math"
	"slices"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// PlanAllReduce returns how an AllReduce of v is carried out, and why. The plan
// is the same on all ranks. It is zero if the engine has no plans.
func (g *Group) PlanAllReduce(v Vector, op Op) schedule.Plan {
	e := g.engine.Host()
	if e == nil || v.device >= 0 {
		return schedule.Plan{}
	}
	p, s := e.plan(v, op), &e.situation
	p.Streams = e.streams(p.Message(g.Size(), v.n) * v.dtype.Size())
	p.Predicted = s.Predict(p, v.n, v.dtype.Size())
	if expected, ok := s.Expect(v.n, v.dtype.Size(), !widened(v.dtype, op)); ok {
		p.Predicted = expected
	}
	return p
}

// Streams returns the maximum number of connections that one message of the
// group uses at once.
func (g *Group) Streams() int {
	if e := g.engine.Host(); e != nil {
		return e.streams(math.MaxInt)
	}
	return 1
}

// Situation returns what the plans of the group depend on. It is zero if the
// engine has no plans.
func (g *Group) Situation() schedule.Situation {
	if e := g.engine.Host(); e != nil {
		return e.situation
	}
	return schedule.Situation{}
}

// situationOf returns what plans depend on: the View, and whether its Transport
// reduces in shared memory. It uses nothing that differs between ranks. Where
// ranks are on several hosts, some may have no peer to share memory with, so
// links inside a host then get the cost of loopback TCP.
func situationOf(v View, reduces bool) schedule.Situation {
	s := schedule.Situation{Hosts: v.hosts(), Links: schedule.Links{Near: schedule.Loopback, Far: schedule.Network}}
	if reduces {
		s.Near, s.Shared = schedule.SharedMemory, true
	}
	if !slices.ContainsFunc(v.Members, func(m Member) bool { return len(m.Addrs) > 0 }) {
		s.Near = schedule.InProcess // without addresses, no rank could be reached from another process
	}
	return s
}

// streams is Abilities.Streams, or 1 if the Transport lacks it.
func (e *HostEngine) streams(bytes int) int {
	if e.can.Streams == nil {
		return 1
	}
	return e.can.Streams(bytes)
}
