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

// exchange carries out a call in memory that all ranks share. If done is false, messages must
// carry it out.
func (c *copier) exchange(o *Operation) (done bool, err error) {
	most := o.most(c.size)
	switch {
	case !c.exchanges(o):
		return false, nil
	case most <= ExchangeBytes:
		o.mark(most)
		return true, c.exchangeSmall(o)
	case c.lends == nil:
		return false, nil
	}
	o.mark(0)
	if done, err = c.lends(o, most); done {
		c.readInAll += c.readByAll(&o.Call, most)
	}
	return done, err
}

// exchanges reports whether a call, other than an AllReduce or a Barrier, can be carried out in
// memory that all ranks share.
func (c *copier) exchanges(o *Operation) bool {
	return c.reducer() != nil && o.Counts == nil && o.W == nil && o.Call.Kind != KindSend
}

// exchangeSmall has the Reducer carry out a call of at most ExchangeBytes that mark has prepared.
func (c *copier) exchangeSmall(o *Operation) error {
	c.readInAll += c.readByAll(&o.Call, int(o.Len))
	return c.reduces.Exchange(o)
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
	c.tell(h)
	return c.hear(want)
}

// tell and hear are the halves of compare. In an operation with a root, data that the root
// sends up, or gets from below, take the place of the message.
func (c *copier) tell(h *Header) { c.post(h, schedule.Up(c.rank, c.size), 0) }

func (c *copier) hear(want *Header) error {
	return c.receiveParts(want, schedule.Down(c.rank, c.size), 0, nil)
}

// rooted begins a direct operation between a root and all others. h is the
// header that this rank sends, want the one that it expects.
func (c *copier) rooted(h *Header) (root int, want *Header) {
	h.Call.Method = uint8(schedule.Direct)
	return int(h.Call.Root), c.expecting(h)
}

// give sends a rank's b, which is not empty, to the root, in messages of at most per bytes.
// The first leaves before the rank hears from the one below, so the root need not wait for two
// messages in turn.
func (c *copier) give(h, want *Header, b []byte, per int) error {
	root := int(h.Call.Root)
	if schedule.Up(c.rank, c.size) != root {
		c.tell(h)
	}
	for k := range messages(len(b), per) {
		c.post(h, root, 1+k, b[k*per:min((k+1)*per, len(b))])
		if k > 0 {
			continue
		}
		if err := c.hear(want); err != nil {
			return err
		}
	}
	return nil
}

// deal sends piece(r), of each bytes, from the root to every other rank r. mine is where
// another rank wants its piece.
func (c *copier) deal(h, want *Header, each int, piece func(rank int) []byte, mine []byte) error {
	if each == 0 {
		return c.compare(h, want)
	}
	const per = schedule.SegmentBytes
	root, count := int(h.Call.Root), messages(each, per)
	if c.rank == root {
		sent := 0
		for i := 1; i < c.size; i++ {
			to := (root + i) % c.size
			theirs := piece(to)
			for k := range count {
				c.post(h, to, 1+k, theirs[k*per:min((k+1)*per, each)])
				if sent++; sent != min(sendSlots, (c.size-1)*count) {
					continue
				}
				if err := c.hear(want); err != nil { // posting more could wait for a rank that is root, too
					return err
				}
			}
		}
		return nil
	}
	c.tell(h)
	if schedule.Down(c.rank, c.size) != root {
		if err := c.hear(want); err != nil {
			return err
		}
	}
	for k := range count {
		if err := c.receive(want, root, 1+k, mine[k*per:min((k+1)*per, each)]); err != nil {
			return err
		}
	}
	return nil
}

// messages returns the number of messages of at most per bytes that carry n
// bytes. An empty piece takes none.
func messages(n, per int) int { return (n + per - 1) / per }
