package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// A copier carries out the calls that do not combine operands, each by an
// algorithm over a wire or by a Reducer.
type copier struct {
	wire
	situation schedule.Situation // what plans depend on
	reduces   Reducer            // nil if the transport has none
	// lends is Abilities.Lend.
	lends func(o *Operation, most int) (done bool, err error)

	reduced   int // bytes that this rank gave to the Reducer's AllReduce
	readInAll int // bytes that all ranks together read from each other in its Exchange, or in Lend
}

// reducer returns the Reducer, or nil if there is none or another method is
// forced.
func (c *copier) reducer() Reducer {
	if c.situation.Force != 0 && c.situation.Force != schedule.Shared {
		return nil
	}
	return c.reduces
}

// exchange carries out a call in which a rank gives at most most bytes in memory that all ranks
// share. If done is false, messages must carry it out.
func (c *copier) exchange(o *Operation, most int) (done bool, err error) {
	r := c.reducer()
	if r == nil || o.Counts != nil || o.W != nil || most > ExchangeBytes && c.lends == nil {
		return false, nil
	}
	o.Call.Method, o.Part, o.Len = uint8(schedule.Shared), 0, 0
	if most > ExchangeBytes {
		done, err = c.lends(o, most)
	} else {
		o.Len = uint32(most)
		done, err = true, r.Exchange(o)
	}
	if done {
		c.readInAll += c.readByAll(&o.Call, most)
	}
	return done, err
}

// readByAll returns how many bytes the ranks of an exchange together read from others.
func (c *copier) readByAll(call *Call, most int) int {
	read := (c.size - 1) * most
	switch call.Kind {
	case KindAllGather: // every rank reads all of it
		read *= c.size
	case KindScatter: // the root gives it all, and each of the others reads a piece
		read /= c.size
	}
	return read
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
