package collective

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Message describes a message that Messages.Next has found.
type Message struct {
	From  int    // the rank that sent it
	Tag   uint32 // as passed to Send
	DType DType
	Len   int  // elements
	End   bool // From has called End and sends no more; Tag, DType and Len are zero
}

// Messages exchanges messages outside of calls. A rank sends to any other when it
// wants to, and receives from whichever rank sends first. The messages from one
// rank to another keep their order.
//
// One goroutine may Send while another is in Next or Recv. Two ranks that send each
// other more than the transport buffers, and have no such other goroutine, wait for
// each other. The transports of Local buffer nothing: a Send there returns when the
// other rank has received.
//
// The Group must not be one that Sub has made.
//
// The group makes no calls until every rank has called End. A call of a rank that
// exchanges messages returns ErrMessaging and breaks nothing. If a rank makes a call
// that sends something instead of beginning Messages, all ranks get a mismatch, and the
// group is broken. A call that only receives, such as Recv, ends when a message arrives,
// or at its deadline.
//
// Errors are those of calls: a *RankError names the rank that failed, also while all
// ranks wait in Next, and the group is then broken. Errors about arguments, and the
// end of a context before a message has begun, break nothing.
type Messages struct {
	g    *caller
	host *HostEngine

	sending   sync.Mutex // held during Send and End; guards what follows
	sent      []uint64   // by rank
	ended     bool       // End has been called
	sendWatch messageWatch
	header    Header    // of the message that is sent
	sendPart  [1][]byte // its payload

	receiving sync.Mutex // held during Next, Recv and End; guards what follows
	received  []uint64   // by rank
	total     uint64     // messages that have been found
	senders   []int      // the ranks that have not ended; the one that sent last is last
	recvWatch messageWatch
	found     incoming
	recvPart  [1][]byte // where its payload goes
	scratch   []byte    // for payloads that are discarded
}

// Messages begins an exchange of messages. It waits for the asynchronous calls made
// before it, and does not communicate. Call End before the next call of the group.
func (g *caller) Messages(ctx context.Context) (*Messages, error) {
	c := Call{Kind: KindMessage}
	host := g.engine.Host()
	if host == nil || host.can.Next == nil {
		return nil, fmt.Errorf("collective: Messages on rank %d: %w: the transport cannot receive from any rank, or this is a Sub; use the whole group over tcp, shm or Local", g.Rank(), ErrUnsupported)
	}
	if err := g.turn(ctx, &c); err != nil {
		return nil, err
	}
	if err := g.reserve(&c); err != nil {
		return nil, err
	}
	m := &Messages{g: g, host: host, sent: make([]uint64, g.Size()), received: make([]uint64, g.Size())}
	m.sendWatch.most, m.recvWatch.most = g.opts.Deadline, g.opts.Deadline
	for r := range g.Size() {
		if r != g.Rank() {
			m.senders = append(m.senders, r)
		}
	}
	return m, nil
}

// Send sends v, which must be in host memory, to another rank. It returns when v may
// be used again, which may be as late as the other's Recv. An empty v sends only the
// tag. If ctx ends after the message has begun, or the other rank does not receive
// all of it within the group's deadline, the group is broken.
func (m *Messages) Send(ctx context.Context, to int, tag uint32, v Vector) error {
	c := Call{Kind: KindMessage, DType: v.dtype, Root: tag, Count: uint64(v.n)}
	if to < 0 || to >= m.g.Size() || to == m.g.Rank() {
		return fmt.Errorf("collective: %v from rank %d to rank %d: use another rank from 0 to %d", c, m.g.Rank(), to, m.g.Size()-1)
	}
	if err := m.usable(&v); err != nil {
		return err
	}
	if !m.sending.TryLock() {
		return m.concurrent("Send")
	}
	defer m.sending.Unlock()
	if err := m.open(&c); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("collective: %v from rank %d to rank %d: not sent: %w", c, m.g.Rank(), to, context.Cause(ctx))
	}
	m.sendWatch.begin(ctx, m, to)
	return m.sendWatch.over(m.send(to, &c, v.bytes()))
}

// Next waits for the next message of any rank and describes it. It does not receive
// the payload; Recv does. It skips the payload of the message before if Recv has not
// received it. If several ranks have sent, they get turns.
//
// The wait has no deadline. If ctx ends it, nothing is lost or broken, and Next may be
// called again. Each other rank's End is reported once. After the last, Next returns
// io.EOF.
func (m *Messages) Next(ctx context.Context) (Message, error) {
	if !m.receiving.TryLock() {
		return Message{}, m.concurrent("Next")
	}
	defer m.receiving.Unlock()
	if err := m.open(&Call{Kind: KindMessage}); err != nil {
		return Message{}, err
	}
	return m.next(ctx)
}

// Recv receives the payload of the message that Next found. v is in host memory, and
// has the message's type and length; if not, Recv may be called again. If ctx ends
// before the payload has arrived, or it does not arrive within the group's deadline,
// the group is broken.
func (m *Messages) Recv(ctx context.Context, v Vector) error {
	if !m.receiving.TryLock() {
		return m.concurrent("Recv")
	}
	defer m.receiving.Unlock()
	f := &m.found
	err := m.open(&f.Call)
	if err != nil {
		return err
	}
	if !f.offered {
		return fmt.Errorf("collective: Recv of a message on rank %d: there is none: call Next first", m.g.Rank())
	}
	if err := m.usable(&v); err != nil {
		return err
	}
	if v.dtype != f.Call.DType || v.Bytes() != f.bytes {
		return fmt.Errorf("collective: Recv of %v from rank %d on rank %d: the vector must have this type and length, not be %v", f.Call, f.from, m.g.Rank(), v)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("collective: %v from rank %d on rank %d: not received: %w", f.Call, f.from, m.g.Rank(), context.Cause(ctx))
	}
	f.offered = false
	m.recvWatch.begin(ctx, m, f.from)
	for err == nil && f.segments > 0 {
		err = m.receive(v.bytes())
	}
	return m.recvWatch.over(err)
}

// End tells the other ranks that this one sends no more. It discards the messages
// that arrive from then on, and returns when every rank has called End. The group may
// then make calls again, or begin other Messages. End has no deadline. The end of ctx
// breaks the group. If ctx had a deadline, the error names a rank that has not called End.
func (m *Messages) End(ctx context.Context) error {
	if !m.receiving.TryLock() {
		return m.concurrent("Next or Recv")
	}
	defer m.receiving.Unlock()
	if !m.sending.TryLock() {
		return m.concurrent("Send")
	}
	defer m.sending.Unlock()
	c := Call{Kind: KindEnd}
	if err := m.open(&c); err != nil {
		return err
	}
	m.ended = true
	if ctx.Err() != nil { // no other rank is late
		m.host.Abort(&RankError{Rank: m.g.Rank(), Phase: "cancelled", Err: context.Cause(ctx)})
	}
	var awaited atomic.Int64 // a rank that has not ended; this one if there is none
	awaited.Store(int64(m.awaited()))
	defer m.breakAfter(ctx, func() int { return int(awaited.Load()) })()
	var sent error
	var sender sync.WaitGroup
	sender.Go(func() { sent = m.sendEnds(&c) })
	err := m.discard(&awaited)
	sender.Wait()
	if err == nil {
		err = sent
	}
	m.sendWatch.end()
	m.recvWatch.end()
	if err == nil {
		m.g.watchdog.finish()
	}
	return err
}

// sendEnds sends c to every other rank.
func (m *Messages) sendEnds(c *Call) error {
	for i := 1; i < m.g.Size(); i++ {
		if err := m.send((m.g.Rank()+i)%m.g.Size(), c, nil); err != nil {
			return err
		}
	}
	return nil
}

// awaited returns a rank that has not ended, or this one if there is none. The caller
// holds receiving.
func (m *Messages) awaited() int {
	if len(m.senders) == 0 {
		return m.g.Rank()
	}
	return m.senders[0]
}

// discard skips messages until all other ranks have ended. It keeps m.awaited in awaited.
func (m *Messages) discard(awaited *atomic.Int64) error {
	for ; ; awaited.Store(int64(m.awaited())) {
		if _, err := m.next(context.Background()); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// next is Next for a caller that holds receiving.
func (m *Messages) next(ctx context.Context) (Message, error) {
	f := &m.found
	for f.offered = false; f.segments > 0; { // the end of ctx must not break off a segment
		if ctx.Err() != nil {
			return Message{}, m.noMessage(ctx)
		}
		if err := m.receive(nil); err != nil {
			return Message{}, err
		}
	}
	if len(m.senders) == 0 {
		return Message{}, io.EOF
	}
	if err := m.find(ctx); err != nil {
		return Message{}, err
	}
	at := slices.Index(m.senders, f.from)
	// Rotate senders, so that f.from comes last.
	slices.Reverse(m.senders[:at+1])
	slices.Reverse(m.senders[at+1:])
	slices.Reverse(m.senders)
	if f.Call.Kind == KindEnd {
		m.senders = m.senders[:len(m.senders)-1]
		if err := m.receive(nil); err != nil {
			return Message{}, err
		}
		return Message{From: f.from, End: true}, nil
	}
	f.offered = true
	return Message{From: f.from, Tag: f.Call.Root, DType: f.Call.DType, Len: int(f.Call.Count)}, nil
}

// find waits for the header of the next message.
func (m *Messages) find(ctx context.Context) error {
	if !m.host.messaging.TryRLock() {
		return m.closed()
	}
	defer m.host.messaging.RUnlock()
	f := &m.found
	f.Header = m.headerOf(m.total+1, &Call{Kind: KindMessage})
	want, began := f.Header, time.Now()
	m.g.flight.beginNext(&want)
	from, err := m.host.can.Next(ctx, m.senders, &f.Header)
	m.g.flight.endNext(err)
	switch {
	case err != nil:
		return m.failed(&want, began, err)
	case from < 0:
		return m.noMessage(ctx)
	}
	m.received[from]++
	m.total++
	want.Seq = m.received[from]
	if err := f.accept(from, &want, m.g.Rank()); err != nil {
		return m.failed(&want, began, err)
	}
	return nil
}

// receive receives the next segment of the message that was found into its part of b,
// or discards it if b is nil.
func (m *Messages) receive(b []byte) error {
	f := &m.found
	if !m.host.messaging.TryRLock() {
		return m.closed()
	}
	defer m.host.messaging.RUnlock()
	lo, hi := f.next()
	if b == nil {
		m.scratch = slices.Grow(m.scratch[:0], hi-lo)
		b = m.scratch[:hi-lo]
	} else {
		b = b[lo:hi]
	}
	m.recvPart[0] = b
	began := time.Now()
	err := m.host.t.Recv(context.Background(), f.from, &f.Header, m.recvPart[:])
	m.recvPart[0] = nil
	if err != nil {
		return m.failed(&f.Header, began, err)
	}
	f.segments--
	return nil
}

// send sends a message in segments. The caller holds sending.
func (m *Messages) send(to int, c *Call, b []byte) error {
	if !m.host.messaging.TryRLock() {
		return m.closed()
	}
	defer m.host.messaging.RUnlock()
	m.sent[to]++
	h, began := &m.header, time.Now()
	*h = m.headerOf(m.sent[to], c)
	for k := range segmentsOf(len(b)) {
		lo, hi := segment(k, len(b))
		h.Part, h.Len = uint32(k), uint32(hi-lo)
		m.sendPart[0] = b[lo:hi]
		err := m.host.t.Send(context.Background(), to, h, m.sendPart[:])
		m.sendPart[0] = nil
		if err != nil {
			return m.failed(h, began, err)
		}
		m.host.messages++
		m.host.payload += int64(hi - lo)
	}
	return nil
}

// headerOf returns the header of the first segment of a message.
func (m *Messages) headerOf(seq uint64, c *Call) Header {
	e := m.host
	return Header{Job: e.view.Job, Epoch: e.view.Epoch, Group: e.group, Seq: seq, Step: m.g.step.Load(), Call: *c}
}

// A messageWatch breaks the group if the context of a Send or Recv ends during it, or if it
// takes longer than the group's deadline. It serves all of them, because a context and a
// timer for each message would take longer than a short message.
type messageWatch struct {
	watchdog
	peer atomic.Int64
	stop func() bool // forgets to break the group; nil before the first message
}

// begin watches a message to or from peer, until finish.
func (w *messageWatch) begin(ctx context.Context, m *Messages, peer int) {
	w.peer.Store(int64(peer))
	limited, _ := w.watchdog.begin(ctx) // alone, because the caller holds sending or receiving
	if ctx.Err() != nil {
		w.expire(ctx)
	}
	if w.stop == nil {
		w.stop = m.breakAfter(limited, func() int { return int(w.peer.Load()) })
	}
}

// over ends the watch of a message. After an error there will be no more, because the group
// is broken.
func (w *messageWatch) over(err error) error {
	w.finish()
	if err != nil {
		w.end()
	}
	return err
}

// end watches no more messages.
func (w *messageWatch) end() {
	if w.stop != nil {
		w.stop() // first, because close ends the context
	}
	w.close()
}

// breakAfter breaks the group when ctx ends, until stop is called. If a deadline ends it,
// late returns the culprit.
func (m *Messages) breakAfter(ctx context.Context, late func() int) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		broke := &RankError{Rank: m.g.Rank(), Phase: "cancelled", Err: context.Cause(ctx)}
		if errors.Is(broke.Err, ErrLate) || errors.Is(broke.Err, context.DeadlineExceeded) {
			broke = &RankError{Rank: late(), Phase: "not called", Err: lateness(broke.Err)}
		}
		m.host.Abort(broke)
	})
}

// usable checks a vector before anything is sent or received.
func (m *Messages) usable(v *Vector) error {
	if !v.onHost() {
		return fmt.Errorf("collective: message of %v on rank %d: %w: use a Vector in host memory", *v, m.g.Rank(), ErrUnsupported)
	}
	return nil
}

// open returns why there can be no more messages, or nil. The caller holds sending or
// receiving.
func (m *Messages) open(c *Call) error {
	if err := m.g.refusal(c); err != nil {
		return err
	}
	if m.ended {
		return fmt.Errorf("collective: %v on rank %d after End: call Group.Messages again", *c, m.g.Rank())
	}
	return nil
}

// failed breaks the group on all ranks.
func (m *Messages) failed(h *Header, began time.Time, err error) error {
	m.host.blame(err)
	return m.g.fail(&h.Call, h.Seq, time.Since(began), err)
}

func (m *Messages) noMessage(ctx context.Context) error {
	return fmt.Errorf("collective: no message on rank %d: %w", m.g.Rank(), context.Cause(ctx))
}

func (m *Messages) concurrent(method string) error {
	return fmt.Errorf("collective: %s on rank %d: %w", method, m.g.Rank(), ErrConcurrent)
}

func (m *Messages) closed() error {
	return fmt.Errorf("collective: messages on rank %d: %w", m.g.Rank(), ErrClosed)
}
