package collective

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// Order says in which order a Group's reductions may combine their operands.
type Order uint8

// The orders.
const (
	// RingOrder is the one order that the package comment defines. The bits of a
	// sum depend on nothing but the operands and their number.
	RingOrder Order = iota
	// AnyOrder lets AllReduce take algorithms that fold in other orders where they
	// are faster. Every rank still has the same bits, and so has the next run that
	// has the same plans; another transport, another layout of hosts, another size
	// of messages or another cut of an arena may have others.
	AnyOrder
)

// String is the order as flags spell it.
func (o Order) String() string {
	switch o {
	case RingOrder:
		return "ring"
	case AnyOrder:
		return "any"
	}
	return fmt.Sprintf("order(%d)", uint8(o))
}

// ParseOrder reads what String writes.
func ParseOrder(s string) (Order, error) {
	for o := RingOrder; o <= AnyOrder; o++ {
		if s == o.String() {
			return o, nil
		}
	}
	return 0, fmt.Errorf("order %q: it must be %v or %v", s, RingOrder, AnyOrder)
}

// PlanAllReduce says how an AllReduce of v is carried out, and why: the same on
// all ranks. The zero Plan is of an engine that does not tell.
func (g *Group) PlanAllReduce(v Vector, op Op) schedule.Plan {
	e := g.engine.Host()
	if e == nil || v.device >= 0 {
		return schedule.Plan{}
	}
	p, s := e.plan(v, op), &e.situation
	p.Streams = e.streams(p.Message(g.Size(), v.n) * v.dtype.Size())
	p.Predicted = s.Predict(p, v.n, v.dtype.Size())
	if expected, ok := s.Table.Expect(g.Size(), v.Bytes()); ok && s.Force == 0 {
		p.Predicted = expected
	}
	return p
}

// Streams is over how many connections at once a message of the group travels at
// most, be it as long as it will.
func (g *Group) Streams() int {
	if e := g.engine.Host(); e != nil {
		return e.streams(math.MaxInt)
	}
	return 1
}

// Situation is what the plans of the group depend on; the zero value is of an
// engine that does not tell.
func (g *Group) Situation() schedule.Situation {
	if e := g.engine.Host(); e != nil {
		return e.situation
	}
	return schedule.Situation{}
}

// Tune has the group use what was measured from now on. Every rank calls it,
// and all use what rank 0 gives, be it nil. Under RingOrder only methods of
// ring order are taken from it, so no bits change. A Sub has its own.
func (g *Group) Tune(ctx context.Context, t *schedule.Table) error {
	length := []int64{-1}
	if t != nil {
		length[0] = int64(len(t.Entries))
	}
	if err := Broadcast(ctx, g, length, 0); err != nil {
		return fmt.Errorf("sharing what tune measured: %w", err)
	}
	e := g.engine.Host()
	if length[0] < 0 {
		if e != nil {
			e.situation.Table = nil
		}
		return nil
	}
	words := make([]int64, 1+entryWords*length[0])
	if g.Rank() == 0 {
		words = putTable(words[:0], t)
	}
	if err := Broadcast(ctx, g, words, 0); err != nil {
		return fmt.Errorf("sharing what tune measured: %w", err)
	}
	if e != nil {
		e.situation.Table = getTable(words)
	}
	return nil
}

// entryWords is the numbers that an entry of a table travels as.
const entryWords = 5

func putTable(words []int64, t *schedule.Table) []int64 {
	words = append(words, int64(t.Ranks))
	for _, e := range t.Entries {
		words = append(words, int64(e.Bytes), int64(e.Method), int64(e.Segment), int64(e.Measured), int64(e.Predicted))
	}
	return words
}

func getTable(words []int64) *schedule.Table {
	t := &schedule.Table{Ranks: int(words[0])}
	for w := words[1:]; len(w) > 0; w = w[entryWords:] {
		t.Entries = append(t.Entries, schedule.Entry{
			Bytes: int(w[0]), Method: schedule.Method(w[1]), Segment: int(w[2]), Measured: time.Duration(w[3]), Predicted: time.Duration(w[4]),
		})
	}
	return t
}
