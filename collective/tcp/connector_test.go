package tcp

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// manyMembers returns a View of n members. This process is rank 0.
func manyMembers(n int) collective.View {
	v := collective.View{Job: 7, Epoch: 2, Members: make([]collective.Member, n)}
	for r := range v.Members {
		v.Members[r] = collective.Member{Name: fmt.Sprintf("n/%d", r), Nonce: uint64(100 + r)}
	}
	return v
}

// A Connector keeps as many Links as a View of many ranks needs, and refuses Links that do
// not belong to it. It also keeps many Links of Views that it does not know yet, and lets
// the diallers of the others try again.
func TestWaitingLinks(t *testing.T) {
	v := manyMembers(1000)
	c := NewConnector(Identity{Name: "n/0", Nonce: 100})
	digest := v.Digest()
	arrive := func(rank int, epoch uint64, stream uint8) error {
		m := v.Members[rank]
		p := Purpose{Job: v.Job, Epoch: epoch, Digest: digest, Rank: uint32(rank), Channel: Bulk, Stream: stream, Streams: MaxStreams}
		from := Identity{Name: m.Name, Nonce: m.Nonce}
		err := c.Allow(from, p)
		if err == nil {
			c.Accept(&Link{peer: from, purpose: p})
		}
		return err
	}
	all := func(epoch uint64) (arrived int) {
		for r := 1; r < v.Size(); r++ {
			for s := range uint8(MaxStreams) {
				if err := arrive(r, epoch, s); err != nil {
					require.ErrorIs(t, err, errBusy)
					return arrived
				}
				arrived++
			}
		}
		return arrived
	}
	require.Equal(t, minWaiting, all(2), "before the View is known")
	clear(c.waiting)
	c.setView(v, MaxStreams)
	require.Equal(t, 7992, all(2))
	clear(c.waiting)
	require.Equal(t, 7992, all(3), "the next View may be as large")

	m := v.Members[5]
	good := Purpose{Job: 7, Epoch: 2, Digest: digest, Rank: 5, Channel: Bulk, Streams: MaxStreams}
	allow := func(name string, change func(p *Purpose)) error {
		p := good
		change(&p)
		return c.Allow(Identity{Name: name, Nonce: m.Nonce}, p)
	}
	require.NoError(t, allow(m.Name, func(*Purpose) {}))
	require.ErrorContains(t, allow("n/6", func(*Purpose) {}), "n/6 is not rank 5 of epoch 2")
	require.ErrorContains(t, allow(m.Name, func(p *Purpose) { p.Rank = 1000 }), "is not rank 1000")
	require.ErrorContains(t, allow(m.Name, func(p *Purpose) { p.Digest++ }), "n/0 has different members in epoch 2")
	require.ErrorContains(t, allow(m.Name, func(p *Purpose) { p.Channel = Control }), "rank 5 does not dial rank 0")
	require.ErrorContains(t, allow(m.Name, func(p *Purpose) { p.Stream = MaxStreams }), "there is no stream 8: n/0 uses 8 streams")
	require.ErrorContains(t, allow(m.Name, func(p *Purpose) { p.Streams = 1 }), "give all ranks the same --streams")
	for _, err := range []error{allow("n/6", func(*Purpose) {}), allow(m.Name, func(p *Purpose) { p.Digest++ })} {
		require.NotErrorIs(t, err, errBusy)
	}
}

// exhausted is a listener whose process has run out of file descriptors.
type exhausted struct{ ended chan struct{} }

func (f exhausted) Accept() (net.Conn, error) {
	select {
	case <-f.ended:
		return nil, net.ErrClosed
	default:
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
}
func (f exhausted) Close() error   { close(f.ended); return nil }
func (f exhausted) Addr() net.Addr { return nil }

// A process that cannot accept connections blames itself, not the rank that could not
// connect.
func TestNoDescriptors(t *testing.T) {
	c := NewConnector(Identity{Name: "n/0", Nonce: 100})
	l := &Listener{ln: exhausted{make(chan struct{})}, handler: c, slots: make(chan struct{}, 1)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.done.Go(l.run)
	ctx, cancel := context.WithTimeout(context.Background(), 2*acceptRetry)
	defer cancel()
	_, err := c.await(ctx, Purpose{})
	require.NoError(t, l.Close())
	require.ErrorIs(t, err, syscall.EMFILE)
	e := blame(t.Context(), manyMembers(2), 1, err)
	require.Equal(t, 0, e.Rank, "itself")
	require.EqualError(t, e, "rank 0 (n/0) could not connect in epoch 2: it has too few file descriptors for its connections; raise the limit (ulimit -n): accept: too many open files")

	here, there := net.Pipe()
	defer there.Close()
	c.Accept(&Link{conn: here, raw: here}) // now it can accept
	defer c.Close()
	_, err = c.await(ctx, Purpose{Rank: 1})
	require.ErrorIs(t, err, collective.ErrNotConnected)
	require.Equal(t, 1, blame(t.Context(), manyMembers(2), 1, err).Rank)
}

// A process that closes while it connects blames itself, not the rank that it waited for.
func TestClosedWhileConnecting(t *testing.T) {
	c := NewConnector(Identity{Name: "n/0", Nonce: 100})
	c.Close()
	_, err := c.await(t.Context(), Purpose{Rank: 1})
	err = blame(t.Context(), manyMembers(2), 1, err)
	require.ErrorIs(t, err, collective.ErrClosed)
	require.EqualError(t, err, "rank 0 (n/0) cancelled in epoch 2: closed")
}
