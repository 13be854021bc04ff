package tcp

import (
	"context"
	"io"
	"runtime"

	"github.com/ringtrain/ringtrain/collective"
)

// A listening reads the headers of messages from several Links, each in a goroutine of
// its own, which ends with the header. Only the goroutine in Next starts them.
type listening struct {
	reading []bool   // by rank: the goroutine runs, or its result is in arrived
	arrived chan int // ranks whose header has arrived
}

// next returns Abilities.Next. It is nil if some peers have sockets and others do not, which
// happens only if the process has run out of file descriptors.
func (t *Transport) next() func(context.Context, []int, *collective.Header) (int, error) {
	linked := true
	for r := range t.peers {
		linked = linked && t.peers[r].sockets == nil
	}
	switch {
	case t.posts:
		return t.nextFromSockets
	case linked:
		return t.nextFromLinks
	}
	return nil
}

// nextFromLinks is Abilities.Next where no peer has sockets.
func (t *Transport) nextFromLinks(ctx context.Context, from []int, h *collective.Header) (rank int, err error) {
	l := &t.listening
	for {
		if err := t.broken(); err != nil {
			return -1, err
		}
		if t.listenTo(from) {
			runtime.Gosched() // so that the goroutines of all ranks come to read what has arrived
		}
		for arrived := true; arrived; {
			select {
			case r := <-l.arrived:
				l.reading[r] = false
			default:
				arrived = false
			}
		}
		for _, r := range from {
			if !l.reading[r] && t.peers[r].bulk[0].peeked(h) {
				return r, nil
			}
		}
		select {
		case r := <-l.arrived:
			l.reading[r] = false
		case <-t.failed:
		case <-ctx.Done():
			return -1, nil
		}
	}
}

// listenTo starts to read a header from each rank from which none has arrived. It reports
// whether there was any such rank.
func (t *Transport) listenTo(from []int) (started bool) {
	for _, r := range from {
		if !t.listening.reading[r] && !t.peers[r].bulk[0].peeked(new(collective.Header)) {
			t.listen(r)
			started = true
		}
	}
	return started
}

// listen starts to read a header from a rank.
func (t *Transport) listen(rank int) {
	t.listening.reading[rank] = true
	t.spawn(func() {
		if err := t.peers[rank].bulk[0].peek(); err != nil {
			_ = t.linkFailed(context.Background(), rank, "receive", err) // Next returns it
			return
		}
		t.listening.arrived <- rank
	})
}

// spawn runs f in a goroutine that Close waits for, unless the transport has broken.
func (m *monitor) spawn(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken() == nil {
		m.done.Go(f)
	}
}

// peek reads the header of the next message, and leaves it to nextStripe.
func (l *Link) peek() error {
	n, err := io.ReadFull(l.conn, l.in[l.have:])
	l.have += n
	return err
}

// peeked reports whether peek has read a header, and copies it to h.
func (l *Link) peeked(h *collective.Header) bool {
	if l.have < len(l.in) {
		return false
	}
	h.Get(l.in[:])
	return true
}
