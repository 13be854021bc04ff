package shm

import "github.com/ringtrain/ringtrain/collective"

// lendPause is how many calls Lend leaves to messages after one that it could not carry out.
// To find that out, all ranks must wait for each other.
const lendPause = 31

// lending carries out long calls other than AllReduce: every rank shows where what it gives
// lies, and reads what it needs from there. All ranks make the same calls and see the same
// locations, so they all choose the same way.
type lending struct {
	t     *Transport
	pause int // calls to leave to messages
}

// lend is Abilities.Lend.
func (l *lending) lend(o *collective.Operation, most int) (done bool, err error) {
	if l.pause > 0 {
		l.pause--
		return false, nil
	}
	t := l.t
	r, err := t.ready(o)
	if err != nil {
		return false, err
	}
	r.small, r.hasRoot = false, false // so every rank waits until it knows where all data lie
	done, err = l.carryOut(o, most)
	t.wakeSleepers()
	if err != nil {
		err = t.withdraw(err)
	}
	return done, err
}

// carryOut is lend for a call that has been prepared. A rank that gives data returns when all
// others have read them.
func (l *lending) carryOut(o *collective.Operation, most int) (done bool, err error) {
	t := l.t
	if err := t.run.exchange(); err != nil {
		return false, err
	}
	way := l.choose(&o.Call, most)
	if way == byCopy {
		l.pause = lendPause
		return false, nil
	}
	t.wakeSleepers()
	t.chunks++
	if err := l.take(o, way, most); err != nil {
		return false, err
	}
	t.raiseStep(fetched, t.chunks)
	if o.Call.Gives(t.view.Self) {
		for peer := range t.ranks {
			if peer == t.self {
				continue
			}
			if err := t.wait(t.peerFlags[fetched][peer], t.chunks, peer, progress); err != nil {
				return false, err
			}
		}
	}
	return true, t.checkWithdrawn(way)
}

// choose returns the way of a call that has been compared with the others. byCopy stands for
// messages.
func (l *lending) choose(c *collective.Call, most int) way {
	t := l.t
	t.run.findOthers()
	inArenas := true
	for peer, at := range t.locations {
		inArenas = inArenas && (at.arena != 0 || !c.Gives(t.ranks[peer]))
	}
	switch {
	case inArenas:
		return inPlace
	case t.reads && t.choices.Reads(most) && !c.Reduces():
		return byRead
	}
	return byCopy
}

// take completes a call: it reads what this rank needs, in place or by read.
func (l *lending) take(o *collective.Operation, w way, most int) error {
	t, r, self := l.t, &l.t.run, l.t.view.Self
	if w == inPlace {
		if err := r.view(most); err != nil {
			return err
		}
		for peer, rank := range t.ranks {
			t.operands[rank] = t.views[peer]
		}
		if o.Call.Reduces() {
			o.Finish(self, t.operands, &t.chain)
			return nil
		}
	}
	t.operands[self] = r.in
	var p collective.Pieces
	o.Taken(&p, self, len(t.ranks))
	for rank := p.First; rank < p.End; rank++ {
		if w == inPlace || rank == self {
			p.Copy(rank, t.operands[rank])
		} else if err := t.readFrom(t.index[rank], p.At, p.To(rank)); err != nil {
			return err
		}
	}
	return nil
}
