package membership

import (
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
)

// codecVersion is the first byte of a message. Messages with another are refused.
const codecVersion = 1

// encodeMessage packs a message of the view protocol.
func encodeMessage(msg message) []byte {
	w := &writer{}
	w.byte(codecVersion)
	w.byte(byte(msg.Kind))
	w.peer(msg.From)
	w.peer(msg.To)
	w.word(msg.Job)
	w.word(msg.Epoch)
	w.ballot(msg.Ballot)
	if msg.Vote == nil {
		w.byte(0)
		return w.b
	}
	w.byte(1)
	w.vote(msg.Vote)
	return w.b
}

func (w *writer) vote(v *vote) {
	w.ballot(v.Ballot)
	w.word(v.View.Job)
	w.word(v.View.Epoch)
	w.num(uint64(len(v.View.Members)))
	for i, m := range v.View.Members {
		w.member(m)
		if v.Absent != nil && v.Absent[i] {
			w.byte(1)
		} else {
			w.byte(0)
		}
	}
}

// decodeMessage is the inverse of encodeMessage. It refuses more than maxMessage
// bytes, and allocates at most a small multiple of what it gets.
func decodeMessage(b []byte) (message, error) {
	if len(b) > maxMessage {
		return message{}, fmt.Errorf("message: %w: %d bytes", errWire, len(b))
	}
	r := &reader{b: b}
	if v := r.byte(); r.err == nil && v != codecVersion {
		return message{}, fmt.Errorf("message: %w: version %d, not %d", errWire, v, codecVersion)
	}
	msg := message{Kind: kind(r.byte()), From: r.peer(), To: r.peer()}
	msg.Job, msg.Epoch, msg.Ballot = r.word(), r.word(), r.ballot()
	if r.byte() != 0 {
		msg.Vote = r.vote()
	}
	if r.err == nil && (msg.Kind == 0 || msg.Kind >= kinds || msg.From.Nonce == 0 || msg.To.Nonce == 0) {
		r.fail("unknown kind, or no sender or receiver")
	}
	if err := r.done(); err != nil {
		return message{}, fmt.Errorf("message: %w", err)
	}
	return msg, nil
}

func (r *reader) vote() *vote {
	v := &vote{Ballot: r.ballot()}
	v.View.Job, v.View.Epoch = r.word(), r.word()
	n := int(r.num(maxMembers))
	if n > len(r.b)/minMember {
		r.fail("members cut short")
		return nil
	}
	v.View.Members = make([]collective.Member, 0, n)
	absent, some := make([]bool, n), false
	twice := make(map[peer]bool, n)
	for i := range n {
		m := r.member()
		absent[i] = r.byte() != 0
		some = some || absent[i]
		if r.err == nil && (twice[peerOf(m)] || m.Role == collective.Watcher) {
			r.fail("a member twice, or a watcher as a member")
		}
		twice[peerOf(m)] = true
		v.View.Members = append(v.View.Members, m)
	}
	if r.err == nil && (n == 0 || v.View.Job == 0 || v.View.Epoch == 0) {
		r.fail("view without job, epoch or members")
	}
	if some {
		v.Absent = absent
	}
	return v
}
