package membership

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// isOpen reports whether the near end of a pipe still takes bytes.
func isOpen(t *testing.T, near, far net.Conn) bool {
	t.Helper()
	go func() { _, _ = far.Write(make([]byte, 1)) }()
	_, err := near.Read(make([]byte, 1))
	return err == nil
}

// A stranger who opens many streams closes his own, if those of others say something.
func TestTooManyStreams(t *testing.T) {
	var a admission
	var near, far []net.Conn
	for i := range mostStreams + 10 {
		x, y := net.Pipe()
		near, far = append(near, a.admit(x)), append(far, y)
		if i > 0 {
			require.True(t, isOpen(t, near[0], far[0]), "it is never silent for the longest time")
		}
	}
	require.Len(t, a.open, mostStreams)
	for i := 1; i <= 10; i++ {
		assert.False(t, isOpen(t, near[i], far[i]), i)
	}
	for i := range near {
		_ = near[i].Close()
		_ = far[i].Close()
	}
	require.Empty(t, a.open)
	require.Zero(t, a.received)
}

// The stream that has received most is closed if all have received too much.
func TestTooManyBytes(t *testing.T) {
	var a admission
	var near, far []net.Conn
	for range 3 {
		x, y := net.Pipe()
		near, far = append(near, a.admit(x)), append(far, y)
	}
	receive := func(i, n int) error {
		go func() { _, _ = far[i].Write(make([]byte, n)) }()
		buffer := make([]byte, n)
		for at := 0; at < n; {
			m, err := near[i].Read(buffer[at:])
			if err != nil {
				return err
			}
			at += m
		}
		return nil
	}
	require.NoError(t, receive(1, mostReceived/2))
	require.NoError(t, receive(2, mostReceived/2-1))
	require.NoError(t, receive(0, 2)) // one byte too much
	assert.False(t, isOpen(t, near[1], far[1]))
	assert.True(t, isOpen(t, near[2], far[2]))
	assert.True(t, isOpen(t, near[0], far[0]))
	for i := range near {
		_ = near[i].Close()
		_ = far[i].Close()
	}
	require.Zero(t, a.received)
}

// Another program at a seed's address is not taken for a process without a key.
func TestForeignAnswer(t *testing.T) {
	for first, want := range map[byte]error{'H': errForeign, 'S': errForeign, 0: nil, lastMessage: nil, labelByte: nil} {
		near, far := net.Pipe()
		go func() { _, _ = far.Write([]byte{first, 'T'}) }()
		a := &answer{Conn: near}
		_, err := a.Read(make([]byte, 2))
		require.Equal(t, want, err, first)
		_ = near.Close()
		_ = far.Close()
	}
	problem, rejected := explain(errForeign)
	require.Equal(t, "answered, but is not a ringtrain process", problem)
	require.False(t, rejected)
}
