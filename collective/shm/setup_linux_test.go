package shm

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective"
)

// Without the token, a client gets nothing. With it, a client gets the descriptor
// of memory that cannot be mapped in another layout or made smaller. Ranks that
// have mapped it can prove it.
func TestSetupSharesMemory(t *testing.T) {
	members := []collective.Member{{Name: "n/0", Nonce: 5, Host: 1}, {Name: "n/1", Nonce: 6, Host: 1}}
	first := &setup{
		ctx: context.Background(), view: collective.View{Members: members}, ranks: []int{0, 1}, layout: newLayout(2),
		options: Options{reserve: reserve},
	}
	mem, err := first.open()
	require.NoError(t, err)
	defer mem.close()
	defer first.close()

	right := first.server.address()
	wrong := right
	wrong[tokenBytes-1] ^= 1
	_, _, err = fetchDescriptor(context.Background(), wrong[:], 0)
	require.Error(t, err)
	fd, size, err := fetchDescriptor(context.Background(), right[:], 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.Equal(t, newLayout(2).total, size)
	_, err = attachRegion(fd, newLayout(3))
	require.ErrorContains(t, err, "the shared memory has")
	require.ErrorIs(t, unix.Ftruncate(fd, 0), unix.EPERM, "the size is sealed")

	under := &isolated{failed: make(chan struct{})}
	second := &setup{ctx: context.Background(), under: under, view: collective.View{Members: members, Self: 1}, ranks: []int{0, 1}, layout: newLayout(2), at: wrong}
	_, err = second.fetch()
	require.Error(t, err)
	second.at = right
	theirs, err := second.fetch()
	require.NoError(t, err)
	require.False(t, mem.proved(1, 6))
	require.NoError(t, second.sign(theirs))
	require.True(t, mem.proved(1, 6))
	require.NoError(t, mem.tryRead(1))
	second.probe.word++
	require.ErrorContains(t, mem.tryRead(1), "is a different process here")
	require.NoError(t, theirs.close())
}

// The text of a note ends with the note, whatever length the note claims.
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
