package shm

import (
	"sync/atomic"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/calibration"
	arithmetic "github.com/ringtrain/ringtrain/collective/fold"
)

// reduction is what AllReduce keeps from call to call.
type reduction struct {
	// The fields that small calls use come first, next to the last fields of waiter,
	// so that a small call touches fewer cache lines.
	digest       uint64 // of the own header
	most         int    // bytes of a small call
	prefetchMost int    // see calibration.Choices
	early        bool   // the call has been shown, by Transport.show
	lent         bool   // the others may write into the own vector
	unmatched    bool   // the last call has not been compared with those of all ranks; see rooted
	run          run
	lending      lending
	operands     [][]byte // by index
	choices      calibration.Choices
	copyLeast    int      // bytes from which copyForPeers may choose another way than copy
	trialViews   [][]byte // the vectors of a trial in place, by index; nil otherwise
	chain        collective.Chain
	chunks       uint64           // in all earlier calls
	peerFlags    [flags][]*uint64 // by index; shown is not among them
	stringLeast  int              // bytes from which copyForPeers uses a string move
	streamLeast  int              // bytes from which it uses non-temporal stores, if other ranks are far
	distance     distance
	staging      staging
	rooted       rooted
}

// equip finds the call slots and the flags of all ranks.
func (t *Transport) equip() {
	t.run.t, t.lending.t, t.rooted.t = t, t, t
	t.distance.calibrate(t.mem.word(t.mem.header(t.self, 0)))
	t.operands = make([][]byte, len(t.ranks))
	t.locations, t.views = make([]location, len(t.ranks)), make([][]byte, len(t.ranks))
	for i := range t.ranks {
		t.slots = append(t.slots, [2]callSlot{t.mem.callSlot(i, 0), t.mem.callSlot(i, 1)})
	}
	for f := staged; f < flags; f++ {
		t.myFlags[f] = t.mem.word(t.mem.flag(t.self, f, 0))
		for i := range t.ranks {
			t.peerFlags[f] = append(t.peerFlags[f], t.mem.word(t.mem.flag(i, f, 0)))
		}
	}
}

// show is Abilities.Show.
func (t *Transport) show(o *collective.Operation) {
	if t.unmatched || t.under.Err() != nil { // AllReduce or Barrier waits for the others, or returns the error
		return
	}
	t.slots[t.self][(t.calls+1)&1].prefetch(int(o.Len), t.prefetchMost)
	t.prepare(o).show()
	t.early = true
}

// AllReduce is part of collective.Reducer.
func (t *Transport) AllReduce(o *collective.Operation) error {
	r, err := t.ready(o)
	if err != nil {
		return err
	}
	err = r.reduce()
	t.wakeSleepers()
	if err != nil {
		err = t.withdraw(err)
	}
	return err
}

// Exchange is part of collective.Reducer.
func (t *Transport) Exchange(o *collective.Operation) error {
	r, err := t.ready(o)
	if err != nil {
		return err
	}
	rank := t.view.Self
	err = r.exchange()
	t.wakeSleepers()
	if err != nil {
		return err
	}
	for peer, rank := range t.ranks {
		t.operands[rank] = t.slots[peer][r.parity].data(int(o.Len))
	}
	t.operands[rank] = r.in
	o.Finish(rank, t.operands, &t.chain)
	return nil
}

// Barrier is part of collective.Reducer.
func (t *Transport) Barrier(o *collective.Operation) error {
	r, err := t.ready(o)
	if err != nil {
		return err
	}
	err = r.exchange()
	t.wakeSleepers()
	return err
}

// A run is one call. There is one at a time, so the transport holds it.
type run struct {
	t       *Transport
	h       *collective.Header
	at      int // position of the vector in its arena, in elements
	width   int // bytes per element
	parity  int // of the call's number
	in, out []byte
	small   bool // the data are shown with the call
	hasRoot bool // the call is an Exchange with a root; see rooted
}

// ready returns the run of a call, or why the transport is broken. A call that
// has been shown has its run already. If the transport has broken since, the
// call's waits find out.
func (t *Transport) ready(o *collective.Operation) (*run, error) {
	if t.early {
		return &t.run, nil
	}
	return prepared(t, o)
}

// prepared is ready for a call that has not been shown.
func prepared(t *Transport, o *collective.Operation) (*run, error) {
	if err := t.under.Err(); err != nil {
		return nil, err
	}
	if t.unmatched {
		if err := t.rooted.matchLast(); err != nil {
			return nil, err
		}
	}
	t.slots[t.self][(t.calls+1)&1].prefetch(int(o.Len), t.prefetchMost)
	return t.prepare(o), nil
}

// prepare begins the run of a call. A Barrier has no memory.
func (t *Transport) prepare(o *collective.Operation) *run {
	r := &t.run
	r.h, r.in, r.out = &o.Header, nil, nil
	t.lent = false
	if o.Call.Kind != collective.KindBarrier {
		r.out, r.in = o.Memory()
		r.at, r.width = o.Elements()
	}
	if r.hasRoot = o.Call.Rooted(); r.hasRoot && !o.Call.Gives(t.view.Self) {
		r.in = nil
	}
	// An Exchange has no later steps that could move its data.
	r.small = len(r.in) <= t.most || o.Call.Kind != collective.KindAllReduce
	return r
}

// The slot of a call has room for all that a rank gives to an Exchange.
const _ = uint(calibration.MostSmall - collective.ExchangeBytes)

// show shows the call, with its data if the call is small, and returns its
// number.
func (r *run) show() (call uint64) {
	t := r.t
	if t.early {
		t.early = false
		return t.calls
	}
	t.now = r.h
	t.calls++
	call = t.calls
	r.parity = int(call & 1)
	s := &t.slots[t.self][r.parity]
	r.h.Put(s.header)
	if r.small {
		t.copyForPeers(s.data(len(r.in)), r.in, t.distance.far)
	} else {
		r.locate()
		t.locations[t.self].put(s.inline)
		t.lent = t.locations[t.self].arena != 0 && r.h.Call.Kind == collective.KindAllReduce
	}
	t.digest = digest(r.h)
	*s.digest = t.digest // in the line of the flag, so the others need not fetch that of the header
	if t.shared {
		if call%lookEveryCalls == 0 || len(t.near) == 0 || !r.small {
			r.lookAround(call)
		}
		*s.core = t.core
	}
	t.myFlags[shown] = s.shown
	t.raise(shown, call)
	t.under.Begun(r.h)
	return call
}

// exchange shows a small call and waits until all ranks that it awaits have shown theirs. It
// raises no flag after that, so it wakes sleepers before it waits. The fence costs nothing there.
// It takes until the others can see this rank's flag. A rank that waits for others waits longer
// than that anyway, and the others cannot continue before they see the last rank's flag.
//
// If ranks share cores, the next rank on this core waits for this one to yield, so the
// fence would delay it. There the caller wakes sleepers, at the end of the call.
func (r *run) exchange() error {
	t := r.t
	call := r.show()
	if !t.shared {
		t.wakeSleepers()
		return r.matchCalls(call)
	}
	t.nudge()
	r.yieldToPeers(call)
	return r.matchCalls(call)
}

// matchCalls waits until the ranks that this one awaits have shown their calls, and compares
// them.
func (r *run) matchCalls(call uint64) error {
	t := r.t
	for peer := range t.slots {
		if peer == t.self {
			continue
		}
		if !t.rooted.awaits(peer) {
			t.unmatched = true
			continue
		}
		s := &t.slots[peer][r.parity]
		if atomic.LoadUint64(s.shown) < call { // the last rank to call need not call wait
			if err := t.wait(s.shown, call, peer, aCall); err != nil {
				return err
			}
		}
		if *s.digest == t.digest {
			continue
		}
		var got collective.Header
		got.Get(s.header)
		if err := r.h.Match(&got, t.view.Self, t.ranks[peer]); err != nil {
			return t.differ(peer, err)
		}
	}
	return nil
}

// reduce carries out an AllReduce.
func (r *run) reduce() error {
	t := r.t
	if r.small {
		if err := r.exchange(); err != nil {
			return err
		}
		if len(r.in) >= sampleLeast {
			r.measureDistance()
		}
		r.foldSmall()
		return nil
	}
	if &r.in[0] != &r.out[0] {
		arithmetic.Copy(r.out, r.in)
		r.in = r.out
	}
	c, err := r.planSteps()
	if err != nil {
		return err
	}
	t.chunks += uint64(c.chunks)
	for {
		s, ok := c.next()
		if !ok {
			return t.checkWithdrawn(c.way)
		}
		if err := r.perform(&c, s); err != nil {
			return err
		}
	}
}

// foldSmall folds the data that all ranks have shown.
func (r *run) foldSmall() {
	t, n, c := r.t, len(r.in), &r.h.Call
	if len(t.slots) == 2 {
		a, b := r.in, t.slots[1-t.self][r.parity].data(n)
		if t.self == 1 {
			a, b = b, a
		}
		if collective.FoldPair(c, r.at, r.out, a, b) {
			return
		}
	}
	for peer := range t.slots {
		t.operands[peer] = t.slots[peer][r.parity].data(n)
	}
	t.operands[t.self] = r.in
	t.chain.Range(c.DType, c.Op, r.at, r.out, t.operands)
}

// planSteps shows the call, chooses its way and returns its steps.
func (r *run) planSteps() (c steps, err error) {
	t := r.t
	c = steps{self: t.self, size: len(t.ranks), base: t.chunks, chunks: 1}
	c.call = r.show()
	c.way, c.matched, err = r.choose(c.call)
	switch c.way {
	case byCopy:
		chunk := t.mem.chunkOf(len(r.in))
		c.chunks = (len(r.in) + chunk - 1) / chunk
	case byRead:
		c.chunks = r.readChunks()
	}
	return c, err
}

// perform carries out one step.
func (r *run) perform(c *steps, s step) error {
	t := r.t
	switch {
	case s.act == match:
		if err := r.matchCalls(s.least); err != nil {
			return err
		}
		if len(r.in) < stagingLeast {
			r.measureDistance()
		}
		return nil
	case s.least == 0:
	case s.from != allOthers:
		if err := t.wait(t.peerFlags[s.wait][s.from], s.least, s.from, progress); err != nil {
			return err
		}
	default:
		for peer := range t.ranks {
			if peer == t.self {
				continue
			}
			if err := t.wait(t.peerFlags[s.wait][peer], s.least, peer, progress); err != nil {
				return err
			}
		}
	}
	t.nudge()
	n := c.base + uint64(s.chunk)
	switch s.act {
	case stage:
		r.stage(s.chunk, n)
	case fold:
		r.fold(s.chunk, n)
	case copyResult:
		r.copyResult(s.chunk, n, s.from)
	case foldAll:
		r.foldInPlace()
	case readOwn:
		if err := r.readOperands(s.chunk); err != nil {
			return err
		}
	case readOther:
		if err := r.readResult(s.chunk, s.from); err != nil {
			return err
		}
	}
	if s.value != 0 {
		t.raiseStep(s.raise, s.value)
	}
	return nil
}
