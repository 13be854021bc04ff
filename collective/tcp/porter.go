package tcp

import (
	"context"

	"github.com/ringtrain/ringtrain/collective"
)

// A porter carries stripes one way over one Link, in a goroutine of its own, so
// that the Links of a peer work at the same time: under TLS, each on a core of
// its own. Its owner gives it one stripe at a time, and waits for it.
type porter struct {
	carry func(ctx context.Context, parts [][]byte) error // its errors are what broke the transport
	ctx   context.Context
	parts [][]byte // of the stripe in progress
	work  chan struct{}
	done  chan error
	gone  chan struct{} // closed when it carries no more
}

// porter makes one, which ends when the transport is broken.
func (t *Transport) porter(carry func(context.Context, [][]byte) error) *porter {
	p := &porter{carry: carry, work: make(chan struct{}, 1), done: make(chan error, 1), gone: make(chan struct{})}
	t.done.Go(func() {
		defer close(p.gone)
		for {
			select {
			case <-p.work:
				p.done <- p.carry(p.ctx, p.parts)
			case <-t.failed:
				return
			}
		}
	})
	return p
}

// begin gives it the bytes [lo, hi) of parts, which are its own until wait
// returns.
func (p *porter) begin(ctx context.Context, parts [][]byte, lo, hi int) {
	p.ctx, p.parts = ctx, pieces(p.parts[:0], parts, lo, hi)
	p.work <- struct{}{}
}

// wait waits until the stripe was carried, and lets go of its memory. It ends
// when the transport breaks, which makes the Link fail.
func (p *porter) wait(t *Transport) error {
	defer func() { clear(p.parts) }()
	select {
	case err := <-p.done:
		return err
	case <-p.gone:
	}
	select {
	case err := <-p.done:
		return err
	default:
		return t.cause
	}
}

// hire makes the porters of the Links of a peer that are not lanes.
func (t *Transport) hire(rank int) {
	p := &t.peers[rank]
	for _, l := range p.bulk[1:] {
		p.out = append(p.out, t.porter(func(ctx context.Context, parts [][]byte) error {
			if err := l.writeStripe(ctx, parts); err != nil {
				return t.explain(ctx, rank, "send", err)
			}
			return nil
		}))
		p.in = append(p.in, t.porter(func(ctx context.Context, parts [][]byte) error {
			if err := l.readStripe(ctx, parts); err != nil {
				return t.explain(ctx, rank, "receive", err)
			}
			return nil
		}))
	}
}

// carryOut is Send over Links.
func (t *Transport) carryOut(ctx context.Context, to int, h *collective.Header, parts [][]byte) error {
	p := &t.peers[to]
	n := stripes(int(h.Len), len(p.bulk))
	for i := 1; i < n; i++ {
		lo, hi := stripe(i, n, int(h.Len))
		p.out[i-1].begin(ctx, parts, lo, hi)
	}
	lo, hi := stripe(0, n, int(h.Len))
	p.first.out = pieces(p.first.out[:0], parts, lo, hi)
	err := p.bulk[0].Write(ctx, h, p.first.out)
	clear(p.first.out)
	if err != nil {
		err = t.explain(ctx, to, "send", err)
	}
	return t.collect(p.out[:n-1], err)
}

// carryIn is Recv over Links.
func (t *Transport) carryIn(ctx context.Context, from int, h *collective.Header, parts [][]byte) error {
	p := &t.peers[from]
	n, begun := stripes(int(h.Len), len(p.bulk)), 0
	err := room(h, parts)
	if err == nil {
		err = p.bulk[0].nextStripe(ctx, func(got *collective.Header) ([][]byte, error) {
			if err := h.Match(got, t.view.Self, from); err != nil {
				return nil, err
			}
			for i := 1; i < n; i++ {
				lo, hi := stripe(i, n, int(h.Len))
				p.in[i-1].begin(ctx, parts, lo, hi)
				begun++
			}
			lo, hi := stripe(0, n, int(h.Len))
			p.first.in = pieces(p.first.in[:0], parts, lo, hi)
			return p.first.in, nil
		})
		clear(p.first.in)
	}
	if err != nil {
		err = t.explain(ctx, from, "receive", err)
	}
	return t.collect(p.in[:begun], err)
}

// collect waits for porters that work beside one that ended with err: parts are
// the caller's again when all have ended.
func (t *Transport) collect(porters []*porter, err error) error {
	for _, p := range porters {
		if e := p.wait(t); err == nil {
			err = e
		}
	}
	return err
}
