package ner

import "github.com/ringtrain/ringtrain/nn/text"

// Costs of moves. A move of cost 0 loses no gold entity that can still be found, and begins
// no wrong one.
const (
	costNone  = 0
	costWrong = 1
	// impossible is the cost of moves that the state does not allow.
	impossible = 2
)

// costs sets the cost of every move in s, as in spaCy, and returns the smallest. Some move
// is always possible. With a missing gold tag every possible move costs 0.
func (m *Moves) costs(to []uint8, s *state, d *document) (least uint8) {
	for i := range to {
		to[i] = impossible
	}
	gold := d.gold[s.next]
	more := s.end-s.next >= 2
	if s.open() {
		least = m.set(to, text.Last, s.label, lastCost(gold, s.sunk(d)))
		if more {
			least = min(least, m.set(to, text.In, s.label, inCost(s, d)))
		}
		return least
	}
	least = m.set(to, text.Out, 0, costIf(gold.action == text.Begin || gold.action == text.Unit))
	if d.blank != nil && d.blank[s.next] {
		return least
	}
	for label := range m.labels {
		if more {
			least = min(least, m.set(to, text.Begin, label, beginCost(text.Begin, gold, label)))
		}
		least = min(least, m.set(to, text.Unit, label, beginCost(text.Unit, gold, label)))
	}
	return least
}

// set sets the cost of a move and returns it.
func (m *Moves) set(to []uint8, a text.Action, label int, cost uint8) uint8 {
	to[m.number(a, label)] = cost
	return cost
}

// beginCost is the cost of beginning an entity by a, which is Begin or Unit.
func beginCost(a text.Action, gold tag, label int) uint8 {
	switch gold.action {
	case text.Missing:
		return costNone
	case a:
		return costIf(int(gold.label) != label)
	}
	return costWrong
}

// lastCost is the cost of ending the open entity. If the gold entity continues, ending it here
// loses the entity, unless it is lost already.
func lastCost(gold tag, sunk bool) uint8 { return costIf(gold.action == text.In && !sunk) }

// inCost is the cost of continuing the open entity with a token after which others follow.
func inCost(s *state, d *document) uint8 {
	next := d.gold[s.next+1].action
	outside := next == text.Out || next == text.Missing
	switch d.gold[s.next].action {
	case text.Last: // the gold entity ends here; one that is lost already may continue if it hides no other
		return costIf(!(s.sunk(d) && outside))
	case text.Out: // the entity is wrong; continuing it is free until another gold entity begins
		return costIf(!outside)
	case text.Unit: // as for Out, and this gold entity is lost in any case
		return costIf(next != text.Out)
	}
	return costNone // Begin, In and Missing
}

// sunk reports whether the open entity cannot become right any more: no gold entity of its
// label begins where it does.
func (s *state) sunk(d *document) bool {
	gold := d.gold[s.begin]
	return gold.action != text.Begin && gold.action != text.Unit || int(gold.label) != s.label
}

func costIf(wrong bool) uint8 {
	if wrong {
		return costWrong
	}
	return costNone
}

// oracle returns a possible move of the smallest cost. Of several, it returns the last one,
// which prefers no entity to one of a missing tag.
func (m *Moves) oracle(costs []uint8, least uint8) int {
	for i := len(costs) - 1; i >= 0; i-- {
		if costs[i] <= least {
			return i
		}
	}
	return -1
}
