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

// Questions and answers go between two processes and mean nothing to the
// vote. Their first byte tells them from messages of the view protocol.
const (
	questionMark = 0x3f
	answerMark   = 0x21
)

// Limits of questions, so that whoever asks much costs little.
const (
	MaxQuestion = 1 << 10   // bytes
	MaxAnswer   = 128 << 10 // bytes
	maxUnread   = 16        // questions that wait to be answered; more are dropped
	askAgain    = 400 * time.Millisecond
)

// A letter is a question or its answer.
type letter struct {
	mark     byte
	from, to peer
	at       netip.AddrPort // where the sender gossips: who is asked may not have heard of it yet
	id       uint64         // drawn by who asks
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

// isLetter tells letters from messages of the view protocol.
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
		r.fail("no letter")
	case l.from.Nonce == 0 || l.to.Nonce == 0:
		r.fail("no sender or receiver")
	case len(r.b) > most:
		r.fail(fmt.Sprintf("a letter of %d bytes, more than %d", len(r.b), most))
	}
	if r.err != nil {
		return letter{}, fmt.Errorf("letter: %w", r.err)
	}
	l.body = append([]byte(nil), r.b...)
	return l, nil
}

// letters are the questions that this process has asked, and those it was.
type letters struct {
	unread chan letter

	mu      sync.Mutex
	pending map[uint64]chan []byte // by id; room for one answer
}

func newLetters() *letters {
	return &letters{unread: make(chan letter, maxUnread), pending: map[uint64]chan []byte{}}
}

// take takes a letter that has come. It never blocks.
func (ls *letters) take(l letter) {
	if l.mark == questionMark {
		select {
		case ls.unread <- l:
		default: // it will be asked again
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

// expect is where the answer to a question will come.
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

// Ask asks another process, whose Config.Answer answers, and waits. It asks
// again while no answer comes, until ctx ends: a process that is stopped, gone,
// or without an Answer says nothing. The question has at most MaxQuestion bytes,
// the answer MaxAnswer.
func (a *Agent) Ask(ctx context.Context, whom collective.Member, question []byte) ([]byte, error) {
	if len(question) > MaxQuestion {
		return nil, fmt.Errorf("membership: a question of %d bytes, more than %d", len(question), MaxQuestion)
	}
	l := letter{mark: questionMark, from: a.machine.id, to: peerOf(whom), at: a.Addr(), id: rand.Uint64(), body: question}
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
			return nil, fmt.Errorf("membership: no answer from %s: %w", whom.Name, context.Cause(ctx))
		}
	}
}

// post sends a letter, if it is known where to.
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

// answer answers questions, one after another.
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
				a.cfg.Log.Warn("an answer is too long to be sent", "bytes", len(body), "most", MaxAnswer)
			default:
				a.reply(l, body)
			}
		}
	}
}
