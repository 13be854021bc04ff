package tcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/secret"
)

// valve is a connection that can hold back what is written to it.
type valve struct {
	net.Conn
	mu     sync.Mutex
	closed bool // hold back
	held   []byte
	writes int
}

func (v *valve) Write(b []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.writes++
	if v.closed {
		v.held = append(v.held, b...)
		return len(b), nil
	}
	return v.Conn.Write(b)
}

// release writes up to n of the bytes held back.
func (v *valve) release(t *testing.T, n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n = min(n, len(v.held))
	_, err := v.Conn.Write(v.held[:n])
	require.NoError(t, err)
	v.held = v.held[n:]
}

// accepted is a Handler that allows every Link and passes it on.
type accepted chan *Link

func (accepted) AcceptFailed(error) {}

func (accepted) Allow(Identity, Purpose) error { return nil }
func (a accepted) Accept(l *Link)              { a <- l }

// pair returns both ends of a Link under TLS. The dialler writes through the valve.
func pair(t *testing.T) (dialled, answered *Link, v *valve) {
	key := secret.New()
	var ids [2]Identity
	for i, name := range []string{"a", "b"} {
		id, err := key.Identity(name, uint64(i))
		require.NoError(t, err)
		ids[i] = Identity{Cluster: "c", Name: name, Nonce: uint64(i), Secret: id}
	}
	in := make(accepted, 1)
	ln, err := Listen(t.Context(), "127.0.0.1:0", ids[1], in)
	require.NoError(t, err)
	conn, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	v = &valve{Conn: conn}
	dialled, err = dialHandshake(t.Context(), v, ids[0], Peer{Name: "b", Nonce: 1}, Purpose{Channel: Control})
	require.NoError(t, err)
	answered = <-in
	require.Equal(t, "a", answered.Peer().Name)
	t.Cleanup(func() {
		require.NoError(t, dialled.Close())
		require.NoError(t, answered.Close())
		require.NoError(t, ln.Close())
	})
	return dialled, answered, v
}

// If a read deadline expires anywhere inside a TLS record, nothing is lost, and the next
// call reads the rest. Detecting silent peers depends on this.
func TestDeadlineInsideRecord(t *testing.T) {
	dialled, answered, v := pair(t)
	v.closed = true
	var got collective.Header
	into := func(h *collective.Header) ([][]byte, error) { got = *h; return nil, nil }
	expire := func(cut int) {
		require.NoError(t, answered.raw.SetReadDeadline(time.Now().Add(2*time.Millisecond)))
		require.ErrorIs(t, answered.Next(context.Background(), into), os.ErrDeadlineExceeded, "after %d bytes", cut)
	}
	for cut := range 100 {
		require.NoError(t, dialled.Write(context.Background(), &collective.Header{Seq: uint64(cut)}, nil))
		if cut >= len(v.held) {
			v.release(t, cut)
			break
		}
		v.release(t, cut)
		expire(cut)
		expire(cut)
		v.release(t, len(v.held))
		require.NoError(t, answered.raw.SetReadDeadline(time.Now().Add(10*time.Second)))
		require.NoError(t, answered.Next(context.Background(), into))
		require.Equal(t, uint64(cut), got.Seq)
	}
}

// A short message is one record in one write. In a longer one, every record but the last
// is full.
func TestRecords(t *testing.T) {
	dialled, answered, v := pair(t)
	const most = maxRecord - collective.HeaderSize
	for _, c := range []struct {
		parts   []int
		records int
	}{
		{nil, 1}, {[]int{0}, 1}, {[]int{1}, 1}, {[]int{100, 0, 3000, 5}, 1}, {[]int{most}, 1}, {[]int{most + 1}, 2}, {[]int{most, 1}, 2},
		{[]int{most + maxRecord}, 2}, {[]int{10, 5 * maxRecord, 10}, 6}, {[]int{maxRecord - 1, maxRecord - 1, maxRecord - 1}, 4},
	} {
		h := collective.Header{Seq: 9}
		var parts, room [][]byte
		for _, n := range c.parts {
			p := make([]byte, n)
			for i := range p {
				p[i] = byte(rand.Uint32())
			}
			parts, room = append(parts, p), append(room, make([]byte, n))
			h.Len += uint32(n)
		}
		before := sha256.Sum256(bytes.Join(parts, nil))
		v.writes = 0
		require.NoError(t, dialled.Write(context.Background(), &h, parts))
		require.LessOrEqual(t, v.writes, c.records+1, "%v", c.parts)
		if c.records == 1 {
			require.Equal(t, 1, v.writes, "%v", c.parts)
		}
		require.NoError(t, answered.Next(t.Context(), func(*collective.Header) ([][]byte, error) { return room, nil }))
		require.Equal(t, before, sha256.Sum256(bytes.Join(room, nil)), "%v", c.parts)
	}
}
