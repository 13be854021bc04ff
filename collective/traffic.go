package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// Traffic is what a rank has sent in the calls and Messages of a group. It does not
// include encryption, packet headers or the control connection.
type Traffic struct {
	Messages int64 // each has a header of HeaderSize bytes
	Payload  int64 // bytes after the headers
	// Shared is the bytes that other ranks have read in shared memory instead
	// of receiving them as messages, on average over the ranks; see
	// schedule.Plan.Sent.
	Shared int64
}

// Bytes returns the total, headers included.
func (t Traffic) Bytes() int64 { return t.Messages*HeaderSize + t.Payload + t.Shared }

// Traffic returns what this rank has sent so far. Call it only while no call of
// the group and no Send of its Messages is in progress; asynchronous calls are over when
// their Work is done. A Sub has its own Traffic. Calls that an engine carries out without its
// Host, such as by NCCL, are not included.
func (g *Group) Traffic() Traffic {
	if e := g.engine.Host(); e != nil {
		return e.traffic()
	}
	return Traffic{}
}

// traffic returns Group.Traffic.
func (c *copier) traffic() Traffic {
	shared := schedule.PlanShared().Sent(c.size, c.reduced) + c.readInAll/c.size
	return Traffic{Messages: c.messages, Payload: c.payload, Shared: int64(shared)}
}
