package membership

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// Questions and answers travel between two processes and have no part in the vote.
// Their first byte distinguishes them from messages of the view protocol.
const (
	questionMark = 0x3f
	answerMark   = 0x21
)

// Limits of questions, so that a process that asks a lot costs little.
const (
	MaxQuestion = 1 << 10   // bytes
	MaxAnswer   = 128 << 10 // bytes
	maxUnread   = 16        // questions that may wait for an answer; more are dropped
	askAgain    = 400 * time.Millisecond
)

// A letter is a question or its answer.
type letter struct {
	mark     byte
	from, to peer
	at       netip.AddrPort // the sender's gossip address, which the receiver may not know yet
	id       uint64         // random, drawn by the asker
	body     []byte
}

func (l letter) encode() []byte {
	w := &writer{}
	w.byte(l.mark)
	w.peer(l.from)
	w.peer(l.to)
	w.addr(l.at)
	w.word(l.id)
	w.b = append(w.b, l.body...)
	return w.b
}

// isLetter reports whether b is a letter, not a message of the view protocol.
func isLetter(b []byte) bool { return len(b) > 0 && isMark(b[0]) }

func isMark(b byte) bool {
	return b == questionMark || b == answerMark || b == callMark || b == hereMark
}

// decodeLetter is the inverse of encode. The body is a copy.
func decodeLetter(b []byte) (letter, error) {
	r := &reader{b: b}
	l := letter{mark: r.byte(), from: r.peer(), to: r.peer(), at: r.addr(), id: r.word()}
	most := MaxQuestion
	switch l.mark {
	case answerMark:
		most = MaxAnswer
	case callMark, hereMark:
		most = 1
	}
	switch {
	case r.err != nil:
	case !isMark(l.mark):
		r.fail("not a letter")
	case l.from.Nonce == 0 || l.to.Nonce == 0:
		r.fail("no sender or receiver")
	case len(r.b) > most:
		r.fail(fmt.Sprintf("letter of %d bytes, more than the limit of %d", len(r.b), most))
	}
	if r.err != nil {
		return letter{}, fmt.Errorf("letter: %w", r.err)
	}
	l.body = append([]byte(nil), r.b...)
	return l, nil
}

// letters has the questions that this process asked and was asked.
type letters struct {
	unread chan letter

	mu      sync.Mutex
	pending map[uint64]chan []byte // by id; room for one answer
}

func newLetters() *letters {
	return &letters{unread: make(chan letter, maxUnread), pending: map[uint64]chan []byte{}}
}

// receive handles a letter that arrived. It never blocks.
func (ls *letters) receive(l letter) {
	if l.mark == questionMark {
		select {
		case ls.unread <- l:
		default: // the asker repeats it
		}
		return
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if c := ls.pending[l.id]; c != nil {
		delete(ls.pending, l.id)
		c <- l.body
	}
}

// expect returns the channel on which the answer to a question will arrive.
func (ls *letters) expect(id uint64) <-chan []byte {
	c := make(chan []byte, 1)
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.pending[id] = c
	return c
}

func (ls *letters) forget(id uint64) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	delete(ls.pending, id)
}

// Ask sends a question to another process, whose Config.Answer answers, and waits.
// It repeats the question until an answer arrives or ctx ends: a process that is
// stopped, gone, or has no Answer does not reply. A question has at most
// MaxQuestion bytes, an answer MaxAnswer.
func (a *Agent) Ask(ctx context.Context, member collective.Member, question []byte) ([]byte, error) {
	if len(question) > MaxQuestion {
		return nil, fmt.Errorf("membership: question of %d bytes, more than the limit of %d", len(question), MaxQuestion)
	}
	l := letter{mark: questionMark, from: a.machine.id, to: peerOf(member), at: a.Addr(), id: rand.Uint64(), body: question}
	answer := a.letters.expect(l.id)
	defer a.letters.forget(l.id)
	again := time.NewTicker(askAgain)
	defer again.Stop()
	for {
		a.post(l)
		select {
		case body := <-answer:
			return body, nil
		case <-again.C:
		case <-a.life.over:
			return nil, ErrClosed
		case <-ctx.Done():
			return nil, fmt.Errorf("membership: no answer from %s: %w", member.Name, context.Cause(ctx))
		}
	}
}

// post sends a letter if the receiver's address is known.
func (a *Agent) post(l letter) {
	a.in.put(func(time.Time) {
		if to, ok := a.known[l.to]; ok {
			a.out.put(to, l.encode())
		}
	})
}

// reply answers a question.
func (a *Agent) reply(question letter, body []byte) {
	l := letter{mark: answerMark, from: question.to, to: question.from, at: a.Addr(), id: question.id, body: body}
	a.in.put(func(time.Time) { a.out.put(a.whereabouts(question), l.encode()) })
}

// answer answers questions one by one.
func (a *Agent) answer(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case l := <-a.letters.unread:
			body := a.cfg.Answer(l.body)
			switch {
			case body == nil:
			case len(body) > MaxAnswer:
				a.cfg.Log.Warn("an answer is too long to send", "bytes", len(body), "most", MaxAnswer)
			default:
				a.reply(l, body)
			}
		}
	}
}
