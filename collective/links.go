package collective

import (
	"context"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// linkGroup is the group of the calls that measure links, in headers.
const linkGroup = ^uint32(0) - 1

// A LinkPolicy says what rank 0 knows about the links of a View.
type LinkPolicy struct {
	Known   *schedule.Links // from an earlier group of the same hosts; nil if none
	Measure bool            // measure them if they are not known, or not as they were
}

// MeasureLinks makes the engine's plans use what the links between its ranks cost: what
// rank 0 knows, if a few calls confirm it, or else what is measured, in schedule.LinkBound
// or a little more. Every rank calls it before the first call of a group; only the policy of
// rank 0 counts. links is what all ranks use, nil if nothing is known, and measured says
// whether it was measured. If it returns an error, the engine is broken.
func (e *HostEngine) MeasureLinks(ctx context.Context, p LinkPolicy) (links *schedule.Links, measured bool, err error) {
	if e.size < 2 {
		return nil, false, nil
	}
	m := newLinkMeter(ctx, e)
	defer m.end()
	var known schedule.Links
	says := make([]float64, 2) // whether links are known, and whether they may be measured
	if e.rank == 0 {
		if p.Known != nil {
			says[0], known = 1, *p.Known
		}
		if p.Measure {
			says[1] = 1
		}
	}
	says = append(says, known.Words()...) // zero on the other ranks
	if err := m.most(says); err != nil {
		return nil, false, err
	}
	isKnown, measures := says[0] > 0, says[1] > 0
	if isKnown {
		known = schedule.LinksOf(says[2:])
		before := e.situation.Links
		e.situation.Links = known // the calls that confirm it are planned by it
		right := true
		if measures {
			if right, err = m.confirm(&known); err != nil {
				return nil, false, err
			}
		}
		if right {
			return &known, false, nil
		}
		e.situation.Links = before
	}
	if !measures {
		return nil, false, nil
	}
	found := e.situation.Links
	if err := m.measure(&found); err != nil {
		return nil, false, err
	}
	e.situation.Links = found
	return &found, true, nil
}

// inheritLinks takes over what the links of the parent cost, but not its calls, which are
// those of more ranks. What a parent in shared memory knows is not the cost of messages.
func (e *HostEngine) inheritLinks(parent *schedule.Situation) {
	e.situation.Far = parent.Far
	if !parent.Shared {
		e.situation.Near = parent.Near
	}
}
