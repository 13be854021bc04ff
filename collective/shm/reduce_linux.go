package shm

import (
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/publish"
)

// reduction is what AllReduce keeps from call to call.
type reduction struct {
	// What small calls use comes first, next to what a waiter has last, so that they
	// touch fewer cache lines.
	digest   uint64 // of the own header
	early    bool   // the call has been shown, by Transport.show
	lent     bool   // the others may write into the own vector
	run      run
	operands [][]byte // by index
	chain    collective.Chain
	chunks   uint64           // staged in the calls before
	flag     [flags][]*uint64 // of others, by index; shown is not among them
}

// A desk is where a rank shows its even or its odd calls: pieces of the memory
// that all share.
type desk struct {
	shown         *uint64 // the flag
	digest        *uint64
	core          *uint64
	header        []byte
	inline, small []byte // for data: few, and more
}

func (r *region) desk(rank, parity int) desk {
	return desk{
		shown:  r.word(r.flag(rank, shown, parity)),
		digest: r.word(r.digest(rank, parity)), core: r.word(r.core(rank, parity)),
		header: r.bytes(r.header(rank, parity), collective.HeaderSize),
		inline: r.bytes(r.inline(rank, parity), inlineBytes),
		small:  r.bytes(r.small(rank, parity), smallBytes),
	}
}

// data is where n bytes of a small call are shown.
func (d *desk) data(n int) []byte {
	if n <= inlineBytes {
		return d.inline[:n]
	}
	return d.small[:n]
}

// equip finds the flags.
func (t *Transport) equip() {
	t.run.t = t
	t.operands = make([][]byte, len(t.ranks))
	t.places, t.views = make([]location, len(t.ranks)), make([][]byte, len(t.ranks))
	for i := range t.ranks {
		t.desks = append(t.desks, [2]desk{t.mem.desk(i, 0), t.mem.desk(i, 1)})
	}
	for f := staged; f < flags; f++ {
		t.posted[f] = t.mem.word(t.mem.flag(t.self, f, 0))
		for i := range t.ranks {
			t.flag[f] = append(t.flag[f], t.mem.word(t.mem.flag(i, f, 0)))
		}
	}
}

// show is Abilities.Show.
func (t *Transport) show(o *collective.Operation) {
	if t.under.Err() != nil { // AllReduce, or Barrier, says so
		return
	}
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
	t.wake()
	if err != nil {
		err = t.withdraw(err)
	}
	return err
}

// reduce is AllReduce.
func (r *run) reduce() error {
	t := r.t
	if r.small() {
		if err := r.exchange(); err != nil {
			return err
		}
		for peer := range t.desks {
			t.operands[peer] = t.desks[peer][r.parity].data(len(r.in))
		}
		t.operands[t.self] = r.in
		t.chain.Range(r.h.Call.DType, r.h.Call.Op, r.at, r.out, t.operands)
		return nil
	}
	if &r.in[0] != &r.out[0] {
		copy(r.out, r.in)
		r.in = r.out
	}
	c, err := r.plot()
	if err != nil {
		return err
	}
	t.chunks += uint64(c.chunks)
	for {
		s, ok := c.next()
		if !ok {
			return t.whole(c.way)
		}
		if err := r.take(&c, s); err != nil {
			return err
		}
	}
}

// plot shows the call and chooses its course.
func (r *run) plot() (c course, err error) {
	t := r.t
	c = course{self: t.self, size: len(t.ranks), base: t.chunks, chunks: 1}
	c.call = r.show()
	c.way, c.met, err = r.choose(c.call)
	switch c.way {
	case byCopy:
		c.chunks = (len(r.in) + t.mem.chunk - 1) / t.mem.chunk
	case byRead:
		c.chunks = r.readChunks()
	}
	return c, err
}

// AllGather is part of collective.Reducer.
func (t *Transport) AllGather(o *collective.Operation) error {
	r, err := t.ready(o)
	if err != nil {
		return err
	}
	defer t.wake()
	if err := r.exchange(); err != nil {
		return err
	}
	for peer, rank := range t.ranks {
		piece := r.out[rank*len(r.in) : (rank+1)*len(r.in)]
		if peer == t.self {
			copy(piece, r.in)
		} else {
			copy(piece, t.desks[peer][r.parity].data(len(r.in)))
		}
	}
	return nil
}

// Barrier is part of collective.Reducer.
func (t *Transport) Barrier(o *collective.Operation) error {
	r, err := t.ready(o)
	if err != nil {
		return err
	}
	err = r.exchange()
	t.wake()
	return err
}

// post stores a flag. Who waits for it asleep is woken by wake, which comes
// before this rank waits for long, posts again, or is done with the call. To know
// whether anybody sleeps it must first be sure that all can see the flag, and
// right after the store that takes as long as the flag's way to them.
func (w *waiter) post(f flag, value uint64) {
	w.wake()
	publish.Store(w.posted[f], value)
	w.posting = true
	if w.rounds == 0 { // others sleep sooner, and this core is given away
		w.wake()
	}
}

// wake wakes who sleeps although a flag that was posted may be what it waits
// for.
func (w *waiter) wake() {
	if !w.posting {
		return
	}
	w.posting = false
	publish.Fence()
	for peer := range w.ranks {
		if peer != w.self {
			w.rouse(peer)
		}
	}
}

// nudge wakes who can be seen to sleep, before this rank does what takes a while.
// It does not wait until all can see the flag that was posted: who falls asleep
// just now is left to wake.
func (w *waiter) nudge() {
	if !w.posting {
		return
	}
	for peer := range w.ranks {
		if peer != w.self {
			w.rouse(peer)
		}
	}
}

// A run is one call. There is one at a time, which lies in the transport.
type run struct {
	t       *Transport
	h       *collective.Header
	at      int // of the vector in its arena
	width   int // of an element
	parity  int // of the call
	in, out []byte
}

// ready is the run of a call while the transport is whole. Of a call that was shown
// it is ready already, and its waits find out what has come between.
func (t *Transport) ready(o *collective.Operation) (*run, error) {
	if t.early {
		return &t.run, nil
	}
	if err := t.under.Err(); err != nil {
		return nil, err
	}
	return t.prepare(o), nil
}

// prepare is the run of a call, of a Barrier without memory.
func (t *Transport) prepare(o *collective.Operation) *run {
	r := &t.run
	r.h, r.in, r.out = &o.Header, nil, nil
	t.lent = false
	if o.Call.Kind != collective.KindBarrier {
		r.in, _ = o.Src.Host()
		r.out, _ = o.Dst.Host()
		r.at, r.width = o.Src.Arena(), o.Src.DType().Size()
	}
	return r
}

// small reports whether the data are shown with the call.
func (r *run) small() bool { return len(r.in) <= smallBytes }

// show shows the call, and the data if they are few, and returns its number.
func (r *run) show() (call uint64) {
	t := r.t
	if t.early {
		t.early = false
		return t.calls
	}
	t.under.Begun(r.h)
	t.now = r.h
	t.calls++
	call = t.calls
	r.parity = int(call & 1)
	d := &t.desks[t.self][r.parity]
	r.h.Put(d.header)
	if r.small() {
		put(d.data(len(r.in)), r.in)
	} else {
		r.locate()
		t.places[t.self].put(d.inline)
		t.lent = t.places[t.self].arena != 0
	}
	t.digest = digest(r.h)
	*d.digest = t.digest // in the line of the flag, which others look at: no other line comes between
	if t.shared {
		t.core = core()
		*d.core = t.core
	}
	t.posted[shown] = d.shown
	t.post(shown, call)
	return call
}

// exchange is a call whose data are shown with it.
func (r *run) exchange() error {
	call := r.show()
	if r.t.shared {
		r.giveWay(call)
	}
	return r.meet(call)
}

// digest is the same for two headers that match, and hardly ever for others.
func digest(h *collective.Header) uint64 {
	c := &h.Call
	return h.Job*0x9e3779b97f4a7c15 + h.Epoch*0xc2b2ae3d27d4eb4f + h.Seq*0x165667b19e3779f9 +
		(uint64(h.Group)<<32|uint64(c.Kind)<<24|uint64(c.DType)<<16|uint64(c.Op)<<8|uint64(c.Method))*0xd6e8feb86659fd93 +
		(uint64(c.Root)<<32|uint64(c.Offset))*0xff51afd7ed558ccd + c.Count*0xc4ceb9fe1a85ec53 +
		(uint64(h.Part)<<32|uint64(h.Len))*0x87c37b91114253d5
}

// take does one step.
func (r *run) take(c *course, s step) error {
	t := r.t
	switch {
	case s.act == meet:
		return r.meet(s.least)
	case s.least == 0:
	case s.from != everybody:
		if err := t.wait(t.flag[s.wait][s.from], s.least, s.from, progress); err != nil {
			return err
		}
	default:
		for peer := range t.ranks {
			if peer == t.self {
				continue
			}
			if err := t.wait(t.flag[s.wait][peer], s.least, peer, progress); err != nil {
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
	case gather:
		r.gather(s.chunk, n, s.from)
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
		t.post(s.post, s.value)
	}
	return nil
}

// meet waits until everybody has shown its call, and compares it.
func (r *run) meet(call uint64) error {
	t := r.t
	for peer := range t.desks {
		if peer == t.self {
			continue
		}
		d := &t.desks[peer][r.parity]
		if err := t.wait(d.shown, call, peer, aCall); err != nil {
			return err
		}
		if *d.digest == t.digest {
			continue
		}
		var got collective.Header
		got.Get(d.header)
		if err := r.h.Match(&got, t.view.Self, t.ranks[peer]); err != nil {
			return t.differ(peer, err)
		}
	}
	return nil
}

// piece is where the k-th chunk lies in the vector.
func (r *run) piece(k int) (lo, hi int) {
	lo = k * r.t.mem.chunk
	return lo, min(lo+r.t.mem.chunk, len(r.in))
}

// part is the part of a chunk of so many bytes that a rank folds.
func (r *run) part(bytes, rank int) (lo, hi int) {
	lo, hi = part(bytes/r.width, len(r.t.ranks), rank)
	return lo * r.width, hi * r.width
}

// staged is where a rank stages the n-th of all chunks, in so many bytes.
func (r *run) staged(peer int, n uint64, bytes int) []byte {
	return r.t.mem.bytes(r.t.mem.stage(peer, n), bytes)
}

// result is where a rank leaves its part of the n-th of all chunks, so long.
func (r *run) result(peer int, n uint64, bytes int) []byte {
	return r.t.mem.bytes(r.t.mem.result(peer, n), bytes)
}

func (r *run) stage(k int, n uint64) {
	lo, hi := r.piece(k)
	room := r.staged(r.t.self, n, hi-lo)
	if len(r.t.ranks) == 2 {
		put(room, r.in[lo:hi])
		return
	}
	a, b := r.part(hi-lo, r.t.self) // which nobody else folds
	put(room[:a], r.in[lo:lo+a])
	put(room[b:], r.in[lo+b:hi])
}

func (r *run) fold(k int, n uint64) {
	t := r.t
	lo, hi := r.piece(k)
	a, b := 0, hi-lo
	if len(t.ranks) > 2 {
		a, b = r.part(hi-lo, t.self)
	}
	for peer := range t.ranks {
		t.operands[peer] = r.staged(peer, n, hi-lo)[a:b]
	}
	t.operands[t.self] = r.in[lo+a : lo+b]
	result := r.out[lo+a : lo+b]
	if len(t.ranks) > 2 {
		result = r.result(t.self, n, b-a)
	}
	t.chain.Range(r.h.Call.DType, r.h.Call.Op, r.at+(lo+a)/r.width, result, t.operands)
	if len(t.ranks) > 2 {
		copy(r.out[lo+a:lo+b], result)
	}
}

func (r *run) gather(k int, n uint64, peer int) {
	lo, hi := r.piece(k)
	a, b := r.part(hi-lo, peer)
	copy(r.out[lo+a:lo+b], r.result(peer, n, b-a))
}
