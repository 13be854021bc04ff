package paramserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer"
)

// The tags of messages between Peers.
const (
	peerGradient = uint32(iota + 1) // of the receiver's share
	peerValues                      // of the sender's share
	peerAsk                         // for the values and slots of the receiver's share
	peerAnswer                      // values and slots of the sender's share
	peerFinish                      // no more gradients come
	peerFinal                       // the last values, and what became of the gradients
	peerLeave                       // nothing more comes
	peerTags
)

// A peerMail holds what other Peers have sent to this one. One goroutine receives it while the
// worker computes and sends, so two workers that send to each other do not wait for each other.
// Another goroutine answers those that ask for the state.
//
// Its memory does not grow with what others send: gradients are added to a sum, and newer
// values of a share replace older ones.
type peerMail struct {
	messages
	exchange *exchange
	self     int

	sending chan struct{} // has room for the token of the goroutine that sends
	asked   chan question // not yet answered; has room for one of each rank
	changed chan struct{} // has room for one; full after a message has come
	ended   chan struct{} // closed when nothing more comes; then err is set
	err     error
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu      sync.Mutex // guards what follows
	owner   owner
	parked  []parked    // by owner
	number  int         // of this rank's last question
	answers [][]float32 // to it, by owner; nil until they come
	said    [peerTags][]bool
	rows    int     // behind all gradients since the last report, dropped ones included
	loss    float64 // summed over them
	stop    bool    // some worker asks all to stop
	stale   Staleness
}

// parked are the newest values that an owner has sent, until the worker begins to use them.
type parked struct {
	version int
	values  []float32
}

// A question is that of another worker for values and slots.
type question struct{ from, number int }

// newPeerMail begins to receive the messages of a group.
func newPeerMail(m messages, x *exchange, o owner) *peerMail {
	n := x.workers
	p := &peerMail{
		messages: m, exchange: x, self: x.group.Rank(), owner: o,
		sending: make(chan struct{}, 1), asked: make(chan question, n), changed: make(chan struct{}, 1), ended: make(chan struct{}),
		parked: make([]parked, n), answers: make([][]float32, n),
	}
	for i, elements := range x.lens {
		if i != p.self {
			p.parked[i].values = make([]float32, elements)
		}
	}
	for tag := range p.said {
		p.said[tag] = make([]bool, n)
		p.said[tag][p.self] = true
	}
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(context.Background())
	p.done.Go(func() {
		defer close(p.ended)
		p.err = p.receive(ctx)
	})
	p.done.Go(func() { p.answer(ctx) })
	return p
}

// close ends the goroutines.
func (p *peerMail) close() {
	p.cancel()
	p.done.Wait()
}

// send sends a message. b may be used again when it returns.
func (p *peerMail) send(ctx context.Context, to int, tag uint32, b []float32) error {
	select {
	case p.sending <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p.sending }()
	return p.Send(ctx, to, tag, collective.Of(b))
}

// receive receives until ctx ends, or the group breaks.
func (p *peerMail) receive(ctx context.Context) error {
	var room []float32
	for {
		m, err := p.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			<-ctx.Done()
			return context.Cause(ctx)
		case err != nil:
			return err
		case m.End:
			if err := p.gone(m.From); err != nil {
				return err
			}
			continue
		}
		if want := p.elements(m.Tag, m.From); m.Len != want || m.DType != collective.Float32 {
			return fmt.Errorf("paramserver: worker %d sends message %d of %d elements, and this worker expects %d: run the same version on every machine", m.From, m.Tag, m.Len, want)
		}
		if cap(room) < m.Len {
			room = make([]float32, m.Len)
		}
		room = room[:m.Len]
		if err := p.Recv(ctx, collective.Of(room)); err != nil {
			return err
		}
		if err := p.deliver(m.From, m.Tag, room); err != nil {
			return err
		}
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
}

// elements returns the length of a message from another rank, or -1 if there is no such
// message.
func (p *peerMail) elements(tag uint32, from int) int {
	x := p.exchange
	switch tag {
	case peerGradient:
		return headerLen + x.lens[p.self]
	case peerValues:
		return headerLen + x.lens[from]
	case peerAnswer:
		return headerLen + x.lens[from]*(1+len(x.layout.Slots))
	case peerFinal:
		return headerLen + x.lens[from] + 2*staleWords
	case peerAsk, peerFinish, peerLeave:
		return headerLen
	}
	return -1
}

// deliver handles a message. b is valid during the call.
func (p *peerMail) deliver(from int, tag uint32, b []float32) error {
	h, body := getHeader(b), b[headerLen:]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said[tag][from] = true
	p.stop = p.stop || h.stop
	switch tag {
	case peerGradient:
		p.rows, p.loss = p.rows+h.rows, p.loss+h.loss
		return p.owner.add(from, h, body)
	case peerValues, peerFinal:
		own := &p.parked[from]
		if h.version > own.version {
			own.version = h.version
			copy(own.values, body)
		}
		if tag == peerFinal {
			p.stale.add(decodeStaleness(body[len(own.values):]))
		}
	case peerAnswer:
		if h.number == p.number {
			p.answers[from] = slices.Clone(b)
		}
	case peerAsk:
		select {
		case p.asked <- question{from, h.number}:
		default:
			return fmt.Errorf("paramserver: worker %d asks again before the answer: run the same version on every machine", from)
		}
	}
	return nil
}

// gone handles the end of another rank's messages.
func (p *peerMail) gone(rank int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said[peerLeave][rank] = true
	if !p.said[peerFinal][rank] {
		return fmt.Errorf("paramserver: worker %d has ended before this one: all workers must make the same calls", rank)
	}
	return nil
}

// answer answers questions until ctx ends, or the group breaks.
func (p *peerMail) answer(ctx context.Context) {
	for {
		select {
		case q := <-p.asked:
			if p.send(ctx, q.from, peerAnswer, p.state(q.number)) != nil {
				return
			}
		case <-p.ended:
			return
		case <-ctx.Done():
			return
		}
	}
}

// state returns the answer to a question.
func (p *peerMail) state(number int) []float32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := &p.owner
	b := make([]float32, headerLen, headerLen+o.params.Values.Len()*(1+len(o.layout.Slots)))
	header{number: number, version: o.version}.put(b)
	for _, slot := range append([]string{""}, o.layout.Slots...) {
		b = append(b, o.arena(slot).Float32s()...)
	}
	return b
}

// await waits until ready, which is called with mu held, returns true.
func (p *peerMail) await(ctx context.Context, ready func() bool) error {
	for ended := false; ; {
		p.mu.Lock()
		ok := ready()
		p.mu.Unlock()
		switch {
		case ok:
			return nil
		case ended:
			return p.err
		}
		select {
		case <-p.changed:
		case <-p.ended:
			ended = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// all reports whether every worker has sent a message with this tag. The caller holds mu.
func (p *peerMail) all(tag uint32) bool { return !slices.Contains(p.said[tag], false) }

// expect prepares for the answers to a question of this rank, and adds its own.
func (p *peerMail) expect(number int) {
	own := p.state(number)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.number = number
	clear(p.answers)
	p.answers[p.self] = own
}

// stopping reports whether a worker asks all to stop.
func (p *peerMail) stopping() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stop
}

// report returns the rows and the loss of the gradients since the last report.
func (p *peerMail) report() (r trainer.Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Weight, r.Loss = p.rows, p.loss/float64(max(p.rows, 1))
	p.rows, p.loss = 0, 0
	return r
}

// end ends the updates, and returns what became of the gradients, in the form in which others
// receive it.
func (p *peerMail) end() []float32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owner.end()
	p.stale.add(p.owner.stale)
	return p.owner.stale.encode()
}

// quiet waits until no answer is being sent, and lets none be sent later.
func (p *peerMail) quiet(ctx context.Context) error {
	select {
	case p.sending <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
