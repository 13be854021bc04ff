package tcp

import (
	"context"

	"github.com/ringtrain/ringtrain/collective"
)

// A streamWorker is a goroutine that sends, or receives, the stripes of one stream.
// With one for each stream and direction, the streams of a peer work in parallel: under
// TLS each one can use a core. The owner starts one stripe at a time and waits for it.
type streamWorker struct {
	move  func(ctx context.Context, parts [][]byte) error // returns what broke the transport
	ctx   context.Context
	parts [][]byte // the stripe in progress
	work  chan struct{}
	done  chan error
	ended chan struct{} // closed when the goroutine ends
}

// newWorker starts a streamWorker. It ends when the transport breaks.
func (t *Transport) newWorker(move func(context.Context, [][]byte) error) *streamWorker {
	w := &streamWorker{move: move, work: make(chan struct{}, 1), done: make(chan error, 1), ended: make(chan struct{})}
	t.done.Go(func() {
		defer close(w.ended)
		for {
			select {
			case <-w.work:
				w.done <- w.move(w.ctx, w.parts)
			case <-t.failed:
				return
			}
		}
	})
	return w
}

// start begins with the bytes [lo, hi) of parts, which the worker uses until wait
// returns.
func (w *streamWorker) start(ctx context.Context, parts [][]byte, lo, hi int) {
	w.ctx, w.parts = ctx, pieces(w.parts[:0], parts, lo, hi)
	w.work <- struct{}{}
}

// wait waits until the stripe has been moved, and drops its memory. It does not hang
// when the transport breaks, because then the Link fails or the worker ends.
func (w *streamWorker) wait(t *Transport) error {
	defer func() { clear(w.parts) }()
	select {
	case err := <-w.done:
		return err
	case <-w.ended:
	}
	select {
	case err := <-w.done:
		return err
	default:
		return t.broken()
	}
}

// startWorkers starts the workers of a peer without sockets. Its first stream needs
// none: the goroutine of the call uses it.
func (t *Transport) startWorkers(rank int) {
	p := &t.peers[rank]
	for _, l := range p.bulk[1:] {
		p.senders = append(p.senders, t.newWorker(func(ctx context.Context, parts [][]byte) error {
			if err := l.writeStripe(ctx, parts); err != nil {
				return t.linkFailed(ctx, rank, "send", err)
			}
			return nil
		}))
		p.receivers = append(p.receivers, t.newWorker(func(ctx context.Context, parts [][]byte) error {
			if err := l.readStripe(ctx, parts); err != nil {
				return t.linkFailed(ctx, rank, "receive", err)
			}
			return nil
		}))
	}
}

// sendOverLinks is Send to a peer without sockets.
func (t *Transport) sendOverLinks(ctx context.Context, to int, h *collective.Header, parts [][]byte) error {
	p := &t.peers[to]
	n := stripes(int(h.Len), len(p.bulk))
	for i := 1; i < n; i++ {
		lo, hi := stripe(i, n, int(h.Len))
		p.senders[i-1].start(ctx, parts, lo, hi)
	}
	lo, hi := stripe(0, n, int(h.Len))
	p.first.out = pieces(p.first.out[:0], parts, lo, hi)
	err := p.bulk[0].Write(ctx, h, p.first.out)
	clear(p.first.out)
	if err != nil {
		err = t.linkFailed(ctx, to, "send", err)
	}
	return t.finish(p.senders[:n-1], err)
}

// recvOverLinks is Recv from a peer without sockets.
func (t *Transport) recvOverLinks(ctx context.Context, from int, h *collective.Header, parts [][]byte) error {
	p := &t.peers[from]
	n, started := stripes(int(h.Len), len(p.bulk)), 0
	err := checkLength(h, parts)
	if err == nil {
		err = p.bulk[0].nextStripe(ctx, func(got *collective.Header) ([][]byte, error) {
			if err := h.Match(got, t.view.Self, from); err != nil {
				return nil, err
			}
			for i := 1; i < n; i++ {
				lo, hi := stripe(i, n, int(h.Len))
				p.receivers[i-1].start(ctx, parts, lo, hi)
				started++
			}
			lo, hi := stripe(0, n, int(h.Len))
			p.first.in = pieces(p.first.in[:0], parts, lo, hi)
			return p.first.in, nil
		})
		clear(p.first.in)
	}
	if err != nil {
		err = t.linkFailed(ctx, from, "receive", err)
	}
	return t.finish(p.receivers[:started], err)
}

// finish waits for the workers of a call whose first stripe ended with err, even after
// an error: only then may the caller use the parts again. It returns the first error.
func (t *Transport) finish(workers []*streamWorker, err error) error {
	for _, w := range workers {
		if e := w.wait(t); err == nil {
			err = e
		}
	}
	return err
}
