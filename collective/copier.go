package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// A copier carries out the calls that do not combine operands, each by an
// algorithm over a wire or by a Reducer.
type copier struct {
	wire
	situation schedule.Situation // what plans depend on
	reduces   Reducer            // nil if the transport has none

	reduced, gathered int // bytes that this rank gave to the Reducer
}

// reducer returns the Reducer, or nil if there is none or another method is
// forced.
func (c *copier) reducer() Reducer {
	if c.situation.Force != 0 && c.situation.Force != schedule.Shared {
		return nil
	}
	return c.reduces
}

// compare begins operations in which a rank may have nothing to receive. Each
// rank sends a message to the rank above, so that neighbours compare calls.
func (c *copier) compare(h, want *Header) error {
	if c.size == 1 {
		return nil
	}
	c.post(h, schedule.Up(c.rank, c.size), 0)
	return c.receiveParts(want, schedule.Down(c.rank, c.size), 0, nil)
}

// rooted begins a direct operation between a root and all others. h is the
// header that this rank sends, want the one that it expects.
func (c *copier) rooted(h *Header) (root int, want *Header, err error) {
	h.Call.Method = uint8(schedule.Direct)
	want = c.expecting(h)
	err = c.compare(h, want)
	return int(h.Call.Root), want, err
}

// messages returns the number of messages of at most per bytes that carry n
// bytes. An empty piece takes none.
func messages(n, per int) int { return (n + per - 1) / per }
