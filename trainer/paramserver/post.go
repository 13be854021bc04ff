package paramserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/ringtrain/ringtrain/collective"
)

// messages are those of a group: a *collective.Messages.
type messages interface {
	Send(ctx context.Context, to int, tag uint32, v collective.Vector) error
	Next(ctx context.Context) (collective.Message, error)
	Recv(ctx context.Context, v collective.Vector) error
	End(ctx context.Context) error
}

// A letter is a message that has arrived. body is valid until the same rank sends the next
// letter in the same direction, which it does only after an answer.
type letter struct {
	from int    // in the first group
	tag  uint32 // of the request, also in an answer
	body []float32
}

// A post sends and receives the messages of a rank, which may be a worker, a server, or both,
// in one group. Above it, ranks are those of the job's first group.
type post struct {
	messages
	group  *collective.Group
	self   int   // in the first group
	origin []int // by rank: that rank in the first group
	most   int   // elements of the largest message

	requests, answers chan letter // they have room for all that can come
	rooms             [2][][]float32

	sending chan struct{} // has room for the token of the goroutine that sends
	ended   chan struct{} // closed when nothing more arrives; then err is set
	err     error
	cancel  context.CancelFunc
	done    sync.WaitGroup

	replaced  chan struct{} // closed when posts have set what follows
	successor *post
	failure   error // why there is none
}

// newPost returns the post of a rank of the first group and begins to receive. No message is
// longer than most.
func newPost(m messages, g *collective.Group, most int) *post {
	return newLaterPost(m, g, most, span(0, g.Size()))
}

// newLaterPost is newPost for any group.
func newLaterPost(m messages, g *collective.Group, most int, origin []int) *post {
	n := g.Size()
	p := &post{
		messages: m, group: g, self: origin[g.Rank()], origin: origin, most: most, replaced: make(chan struct{}),
		requests: make(chan letter, 2*n), answers: make(chan letter, n), rooms: [2][][]float32{make([][]float32, n), make([][]float32, n)},
		sending: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(context.Background())
	p.done.Go(func() {
		defer close(p.ended)
		p.err = p.receive(ctx)
	})
	return p
}

// send sends a message. b may be used again when it returns. Several goroutines may call it.
func (p *post) send(ctx context.Context, to int, tag uint32, b []float32) error {
	rank := slices.Index(p.origin, to)
	if to == p.self {
		room, err := p.room(rank, tag, len(b))
		if err != nil {
			return err
		}
		copy(room, b)
		return p.deliver(letter{to, tag, room})
	}
	select {
	case p.sending <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-p.sending }()
	return p.Send(ctx, rank, tag, collective.Of(b))
}

// receive receives until ctx ends, or the group breaks.
func (p *post) receive(ctx context.Context) error {
	for {
		m, err := p.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			<-ctx.Done()
			return context.Cause(ctx)
		case err != nil:
			return err
		case m.End:
			if err := p.deliver(letter{from: p.origin[m.From], tag: tagLeft}); err != nil {
				return err
			}
			continue
		}
		room, err := p.room(m.From, m.Tag, m.Len)
		if err != nil {
			return err
		}
		if err := p.Recv(ctx, collective.Of(room)); err != nil {
			return err
		}
		if err := p.deliver(letter{p.origin[m.From], m.Tag, room}); err != nil {
			return err
		}
	}
}

// room returns where to receive a message of n elements.
func (p *post) room(from int, tag uint32, n int) ([]float32, error) {
	if n < headerLen || n > p.most || tag&^tagAnswer < tagPush || tag&^tagAnswer >= tagCount {
		return nil, fmt.Errorf("paramserver: rank %d sends message %#x of %d elements, which this rank does not know: run the same version on every machine", from, tag, n)
	}
	room := &p.rooms[direction(tag)][from]
	if cap(*room) < n {
		*room = make([]float32, n)
	}
	return (*room)[:n], nil
}

// direction is 1 for the tag of an answer.
func direction(tag uint32) int { return int(tag / tagAnswer) }

func (p *post) deliver(l letter) error {
	to := p.requests
	if direction(l.tag) == 1 {
		to, l.tag = p.answers, l.tag-tagAnswer
	}
	select {
	case to <- l:
		return nil
	default:
		return fmt.Errorf("paramserver: rank %d sends more messages than this rank has asked for: run the same version on every machine", l.from)
	}
}

// next returns the next letter of p.requests or p.answers.
func (p *post) next(ctx context.Context, from <-chan letter) (letter, error) {
	select {
	case l := <-from:
		return l, nil
	default:
	}
	select {
	case l := <-from:
		return l, nil
	case <-p.ended:
		return letter{}, p.err
	case <-ctx.Done():
		return letter{}, context.Cause(ctx)
	}
}

// close ends receiving.
func (p *post) close() {
	p.cancel()
	p.done.Wait()
}
