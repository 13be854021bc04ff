package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// Traffic is what a rank has sent in the calls of a group. It counts neither
// encryption nor packets nor the control connection.
type Traffic struct {
	Messages int64 // each has a header of HeaderSize bytes
	Payload  int64 // bytes after the headers
	// Shared is the bytes that other ranks have read here, in memory that they
	// share, instead of messages: on average over the ranks, see schedule.Plan.Sent.
	Shared int64
}

// Bytes is all of it, headers included.
func (t Traffic) Bytes() int64 { return t.Messages*HeaderSize + t.Payload + t.Shared }

// Minus is the Traffic since it was before.
func (t Traffic) Minus(before Traffic) Traffic {
	return Traffic{t.Messages - before.Messages, t.Payload - before.Payload, t.Shared - before.Shared}
}

// Traffic is what this rank has sent so far. Call it while no call of the group is
// in progress; asynchronous ones are over when their Work is. A Sub counts its
// own. What an engine carries out without its Host, as by NCCL, is not in it.
func (g *Group) Traffic() Traffic {
	if e := g.engine.Host(); e != nil {
		return e.traffic()
	}
	return Traffic{}
}

// traffic is what Group.Traffic returns.
func (m *mover) traffic() Traffic {
	shared := schedule.PlanShared().Sent(m.size, m.reduced) + schedule.Gathered(m.size, m.gathered)
	return Traffic{Messages: m.messages, Payload: m.payload, Shared: int64(shared)}
}
