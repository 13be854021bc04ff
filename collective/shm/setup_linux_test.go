package shm

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective"
)

// Whoever finds the socket gets nothing without the token; who has it gets
// memory that fits, and no other.
func TestStrangersGetNothing(t *testing.T) {
	members := []collective.Member{{Name: "n/0", Nonce: 5, Host: 1}, {Name: "n/1", Nonce: 6, Host: 1}}
	first := &setup{
		ctx: context.Background(), view: collective.View{Members: members}, ranks: []int{0, 1}, layout: newLayout(2),
		options: Options{reserve: fallocate},
	}
	mem, err := first.open()
	require.NoError(t, err)
	defer mem.close()
	defer first.close()
	name := first.listener.Addr().String()

	call := func(token []byte) (int, error) {
		conn, err := net.Dial("unix", name)
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
		_, err = conn.Write(token)
		require.NoError(t, err)
		return receiveDescriptor(conn.(*net.UnixConn))
	}
	wrong := first.token
	wrong[31] ^= 1
	_, err = call(wrong[:])
	require.Error(t, err)
	fd, err := call(first.token[:])
	require.NoError(t, err)
	defer unix.Close(fd)
	_, err = attach(fd, newLayout(3))
	require.ErrorContains(t, err, "the shared memory has")
	require.ErrorIs(t, unix.Ftruncate(fd, 0), unix.EPERM, "nobody can make it shorter")

	second := &setup{ctx: context.Background(), view: collective.View{Members: members, Self: 1}, ranks: []int{0, 1}, layout: newLayout(2), token: wrong}
	_, err = second.fetch(name)
	require.Error(t, err)
	require.False(t, mem.proved(1, 6))
	second.token = first.token
	theirs, err := second.fetch(name)
	require.NoError(t, err)
	require.True(t, mem.proved(1, 6))
	require.NoError(t, theirs.close())
}

// What comes as a note is cut at the end of the message, whatever it says.
func FuzzNote(f *testing.F) {
	f.Add([]byte{})
	f.Add(append(make([]byte, noteText-2), 0xff, 0xff, 'x'))
	f.Fuzz(func(t *testing.T, b []byte) {
		var note [noteBytes]byte
		copy(note[:], b)
		ok, text := readNote(&note)
		require.Equal(t, note[0] == 1, ok)
		require.LessOrEqual(t, len(text), noteBytes-noteText)
	})
}

// A word that makes no sense breaks the View with an error, and reads nothing
// beyond the memory.
func TestLaneStaysInItsRing(t *testing.T) {
	l := lane{data: make([]byte, 256)}
	for _, count := range []uint64{0, 1, 255, 256, 1 << 40, ^uint64(0)} {
		require.LessOrEqual(t, len(l.at(count, 1<<20)), 256)
	}
	require.Len(t, l.at(250, 64), 6, "up to the end of the ring")
}
