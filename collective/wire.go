package collective

import "context"

// A wire carries the messages of one engine's calls. Only the goroutine of the
// call uses it.
type wire struct {
	t          Transport
	rank, size int
	out        sender
	posted     bool // since the last flush

	messages, payload int64 // sent

	want  Header    // header of the message that is being received
	in    [][]byte  // reused list of a message's parts
	whole [1][]byte // parts of a message that has only one

	waits     *Waits                     // of the Group
	noteWaits func(w *Waits) (recv bool) // Abilities.NoteWaits
	noted     bool                       // the transport notes the waits of Recv
	calls     uint64                     // performed
	heard     []uint64                   // by rank, the last call in which it sent a message
}

func newWire(v View, t Transport, can Abilities) wire {
	return wire{t: t, rank: v.Self, size: v.Size(), out: newSender(t, can), waits: new(Waits), noteWaits: can.NoteWaits, heard: make([]uint64, v.Size())}
}

// record makes the wire note waits in waits.
func (w *wire) record(waits *Waits) {
	w.waits = waits
	if w.noteWaits != nil {
		w.noted = w.noteWaits(waits)
	}
	w.out.noteWaits(waits)
}

// post sends bytes to a rank in the background.
func (w *wire) post(h *Header, to int, part int, parts ...[]byte) {
	m := w.out.slot()
	m.to, m.h = to, *h
	m.parts = append(m.parts[:0], parts...)
	w.submit(m, part)
}

// submit completes the header of an outgoing message, counts the message and
// sends it.
func (w *wire) submit(m *outgoing, part int) {
	m.h.Part, m.h.Len = uint32(part), uint32(sum(m.parts))
	w.posted = true
	w.messages++
	w.payload += int64(m.h.Len)
	w.out.send(m)
}

// flush waits until everything posted has left, and returns the first failure.
func (w *wire) flush() error {
	if !w.posted {
		return nil
	}
	w.posted = false
	return w.out.flush()
}

// expecting returns the header of the messages that a call receives. It is a
// copy of the header that the call sends, because the two count their parts
// separately.
func (w *wire) expecting(h *Header) *Header {
	w.want = *h
	return &w.want
}

// receive fills b from a rank's next message.
func (w *wire) receive(h *Header, from int, part int, b []byte) error {
	w.whole[0] = b
	return w.receiveParts(h, from, part, w.whole[:])
}

// forget forgets the memory of a call that is over, so that it can be collected.
func (w *wire) forget() {
	clear(w.in)
	w.whole[0] = nil
}

// receiveParts fills parts from a rank's next message.
func (w *wire) receiveParts(h *Header, from int, part int, parts [][]byte) error {
	cause := SlowToMove
	if w.heard[from] != w.calls {
		w.heard[from] = w.calls
		if part == 0 || h.Call.Kind != KindBarrier { // in later rounds of a Barrier, a peer first waits for others
			cause = LateToCall
		}
	}
	w.waits.expect(from, cause)
	h.Part, h.Len = uint32(part), uint32(sum(parts))
	if w.noted {
		return w.t.Recv(context.Background(), from, h, parts)
	}
	began := w.waits.Begin(from, AsExpected)
	err := w.t.Recv(context.Background(), from, h, parts)
	w.waits.End(from, AsExpected, began)
	return err
}

func sum(parts [][]byte) int {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	return n
}
