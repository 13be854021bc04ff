package tcp

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// silentFor returns a connection whose dialler has been silent for that long, and the dialler's end.
func silentFor(t *testing.T, silence time.Duration) (*incoming, net.Conn) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	dialler, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	conn, err := ln.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = dialler.Close(), conn.Close() })
	return &incoming{Conn: conn, since: time.Now().Add(-silence)}, dialler
}

// A dialler that gets an answer keeps its connection, however long it was silent before. One
// that loses its connection gets none.
func TestEvictionEndsWithTheAnswer(t *testing.T) {
	l := &Listener{limits: limits{idle: time.Second}, pending: map[*incoming]bool{}}
	answered, dialler := silentFor(t, time.Hour)
	l.pending[answered] = true
	require.True(t, l.keep(answered))
	evicted, _ := silentFor(t, time.Minute)
	l.pending[evicted] = true
	l.evict()
	require.False(t, l.keep(evicted))
	_, err := evicted.Conn.Write([]byte{1})
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = answered.Conn.Write([]byte{1})
	require.NoError(t, err)
	_, err = dialler.Read(make([]byte, 1))
	require.NoError(t, err)
}
