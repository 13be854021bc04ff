package collective

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// Order is the order in which a Group's reductions combine their operands.
type Order uint8

// The orders.
const (
	// RingOrder is the order that the package comment defines. The bits of a
	// result depend only on the operands and the number of ranks.
	RingOrder Order = iota
	// AnyOrder lets AllReduce use algorithms that fold in other orders if they
	// are faster. All ranks still get the same bits, and so does another run
	// with the same plans. Another transport, layout of hosts, message size or
	// cut of an arena may change the bits.
	AnyOrder
)

// String returns the order as flags spell it.
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
	if expected, ok := s.Table.Expect(g.Size(), v.Bytes()); ok && s.Force == 0 {
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

// Tune makes the group's plans use measurements from now on. Every rank calls
// it, and all use the table of rank 0, even if it is nil. Under RingOrder, only
// methods that keep ring order are taken from the table, so no bits change. A
// Sub has its own table.
func (g *Group) Tune(ctx context.Context, t *schedule.Table) error {
	length := []int64{-1}
	if t != nil {
		length[0] = int64(len(t.Entries))
	}
	if err := Broadcast(ctx, g, length, 0); err != nil {
		return fmt.Errorf("collective: broadcasting the tuning table of rank 0: %w", err)
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
		return fmt.Errorf("collective: broadcasting the tuning table of rank 0: %w", err)
	}
	if e != nil {
		e.situation.Table = getTable(words)
	}
	return nil
}

// entryWords is the number of words that carry one entry of a table.
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
