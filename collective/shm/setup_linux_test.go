package shm

import (
	"context"
	"io"
	"net"
	"sync"
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
		options: Options{reserve: reserve},
	}
	mem, err := first.open()
	require.NoError(t, err)
	defer mem.close()
	defer first.close()

	right := first.door.describe()
	wrong := right
	wrong[tokenBytes-1] ^= 1
	_, _, err = call(context.Background(), wrong[:], 0)
	require.Error(t, err)
	fd, size, err := call(context.Background(), right[:], 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.Equal(t, newLayout(2).total, size)
	_, err = attachRegion(fd, newLayout(3))
	require.ErrorContains(t, err, "the shared memory has")
	require.ErrorIs(t, unix.Ftruncate(fd, 0), unix.EPERM, "nobody can make it shorter")

	under := &lonely{failed: make(chan struct{})}
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
	second.mark.word++
	require.ErrorContains(t, mem.tryRead(1), "is another one here")
	require.NoError(t, theirs.close())
}

// Nobody who calls at a door and then says nothing, or is stopped, holds up its
// end, nor the end of a call at a door where nobody answers.
func TestSilenceHoldsNobodyUp(t *testing.T) {
	var a Arenas
	_, err := a.Alloc(1)
	require.NoError(t, err)
	defer a.Close()
	d, err := openDoor(a.duplicate)
	require.NoError(t, err)
	at := d.describe()
	silent, err := net.Dial("unix", d.listener.Addr().String())
	require.NoError(t, err)
	defer silent.Close()
	fd, _, err := call(context.Background(), at[:], 1) // let in after the other
	require.NoError(t, err)
	require.NoError(t, unix.Close(fd))
	begin := time.Now()
	d.close()
	require.Less(t, time.Since(begin), welcomeTime)

	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: d.listener.Addr().String(), Net: "unix"})
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var peer sync.WaitGroup
	peer.Go(func() {
		conn, err := l.Accept()
		if err == nil {
			defer conn.Close()
			_, _ = io.ReadFull(conn, make([]byte, tokenBytes+8))
		}
		cancel()
		<-ctx.Done()
		_, _ = conn.Read(make([]byte, 1)) // until the other side is gone
	})
	begin = time.Now()
	_, _, err = call(ctx, at[:], 1)
	require.Error(t, err)
	require.Less(t, time.Since(begin), welcomeTime)
	peer.Wait()
}

// A piece can be had by its number while there are Arenas, and is zero.
func TestArenas(t *testing.T) {
	var a Arenas
	id, _ := a.find(make([]byte, 4))
	require.Zero(t, id)
	for n := range uint64(3) {
		mem, err := a.Alloc(5000)
		require.NoError(t, err)
		require.Equal(t, make([]byte, 5000), mem)
		id, offset := a.find(mem[64:])
		require.Equal(t, []uint64{n + 1, 64}, []uint64{id, offset})
	}
	d, err := openDoor(a.duplicate)
	require.NoError(t, err)
	defer d.close()
	at := d.describe()
	fd, size, err := call(context.Background(), at[:], 3)
	require.NoError(t, err)
	require.Equal(t, 8192, size)
	require.NoError(t, unix.Close(fd))
	for _, id := range []uint64{0, 4, 1 << 63} {
		_, _, err = call(context.Background(), at[:], id)
		require.Error(t, err, "%d", id)
	}
	require.NoError(t, a.Close())
	_, _, err = call(context.Background(), at[:], 1)
	require.Error(t, err)
	mem, err := a.Alloc(10)
	require.NoError(t, err)
	id, _ = a.find(mem)
	require.Zero(t, id, "nobody can be given it any more")
	_, err = a.Alloc(1 << 50)
	require.ErrorContains(t, err, "no room for")
}

// Who was given a piece in an earlier View, and does not know that it is over,
// writes where nobody reads.
func TestRenew(t *testing.T) {
	var a Arenas
	defer a.Close()
	mine, err := a.Alloc(3 * pageBytes)
	require.NoError(t, err)
	kept, err := a.Alloc(10)
	require.NoError(t, err)
	take := func(id uint64) []byte {
		fd, size, err := a.duplicate(id)
		require.NoError(t, err)
		defer unix.Close(fd)
		mem, err := attach(fd, size)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, unix.Munmap(mem)) })
		return mem
	}
	theirs := take(1)
	mine[pageBytes] = 7
	theirs[0] = 5
	require.Equal(t, byte(7), theirs[pageBytes])
	fd := (*a.list.Load())[1].fd
	require.NoError(t, a.Renew())
	require.Equal(t, []byte{5, 7}, []byte{mine[0], mine[pageBytes]}, "contents stay")
	theirs[0] = 9
	require.Equal(t, byte(5), mine[0])
	require.Equal(t, fd, (*a.list.Load())[1].fd, "nobody has the other one")
	id, _ := a.find(mine)
	require.Equal(t, uint64(1), id)
	again := take(1)
	mine[1] = 3
	require.Equal(t, []byte{5, 3}, again[:2])
	kept[0]++
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
