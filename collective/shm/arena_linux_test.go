package shm

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Pieces are zero. The server gives their descriptors by number until Close.
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
	d, err := startServer(a.duplicate)
	require.NoError(t, err)
	defer d.close()
	at := d.address()
	fd, size, err := fetchDescriptor(context.Background(), at[:], 3)
	require.NoError(t, err)
	require.Equal(t, 8192, size)
	require.NoError(t, unix.Close(fd))
	for _, id := range []uint64{0, 4, 1 << 63} {
		_, _, err = fetchDescriptor(context.Background(), at[:], id)
		require.Error(t, err, "%d", id)
	}
	require.NoError(t, a.Close())
	_, _, err = fetchDescriptor(context.Background(), at[:], 1)
	require.Error(t, err)
	mem, err := a.Alloc(10)
	require.NoError(t, err)
	id, _ = a.find(mem)
	require.Zero(t, id, "no other process will get it")
	if huge := uint64(1 << 50); huge < math.MaxInt { // 2 GiB might exist
		_, err = a.Alloc(int(huge))
		require.ErrorContains(t, err, "no room for")
	}
}

// After Renew, writes by a process that mapped a piece before do not reach the
// piece.
func TestRenew(t *testing.T) {
	var a Arenas
	defer a.Close()
	mine, err := a.Alloc(3 * pageBytes)
	require.NoError(t, err)
	kept, err := a.Alloc(10)
	require.NoError(t, err)
	attachPiece := func(id uint64) []byte {
		fd, size, err := a.duplicate(id)
		require.NoError(t, err)
		defer unix.Close(fd)
		mem, err := attach(fd, size)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, unix.Munmap(mem)) })
		return mem
	}
	theirs := attachPiece(1)
	mine[pageBytes] = 7
	theirs[0] = 5
	require.Equal(t, byte(7), theirs[pageBytes])
	fd := (*a.list.Load())[1].fd
	require.NoError(t, a.Renew())
	require.Equal(t, []byte{5, 7}, []byte{mine[0], mine[pageBytes]}, "the contents stay")
	theirs[0] = 9
	require.Equal(t, byte(5), mine[0])
	require.Equal(t, fd, (*a.list.Load())[1].fd, "no process has the other piece, so it is not replaced")
	id, _ := a.find(mine)
	require.Equal(t, uint64(1), id)
	again := attachPiece(1)
	mine[1] = 3
	require.Equal(t, []byte{5, 3}, again[:2])
	kept[0]++
}

// A part that is reclaimed keeps its contents, and no write of this process to any
// part of the piece is lost. Until the piece is renewed, no process gets it and
// find does not find it.
func TestReclaim(t *testing.T) {
	const size = 40 * pageBytes
	var a Arenas
	defer a.Close()
	mem, err := a.Alloc(size)
	require.NoError(t, err)
	other, err := a.Alloc(10)
	require.NoError(t, err)
	fd, _, err := a.duplicate(1)
	require.NoError(t, err)
	theirs, err := attach(fd, size)
	require.NoError(t, err)
	require.NoError(t, unix.Close(fd))
	defer func() { require.NoError(t, unix.Munmap(theirs)) }()
	for i := range mem {
		mem[i] = byte(i % 251)
	}

	const from, n = 2*pageBytes + 100, 33 * pageBytes
	busy := []int{from - 8, from + n + 8} // in pages of the part, but outside the part
	counts := make([]byte, len(busy))
	var began, end atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() {
		for !end.Load() {
			for k, at := range busy {
				counts[k]++
				mem[at]++
			}
			began.Store(true)
		}
	})
	for !began.Load() {
	}
	require.NoError(t, a.reclaim(1, from, n))
	end.Store(true)
	writer.Wait()
	for i := range theirs {
		theirs[i] = 255
	}
	for i := range mem {
		want := byte(i % 251)
		if k := slices.Index(busy, i); k >= 0 {
			want += counts[k]
		} else if i < from/pageBytes*pageBytes || i >= (from+n+pageBytes-1)/pageBytes*pageBytes {
			want = 255 // still shared
		}
		require.Equal(t, want, mem[i], "byte %d", i)
	}

	id, _ := a.find(mem)
	require.Zero(t, id)
	_, _, err = a.duplicate(1)
	require.Error(t, err)
	id, _ = a.find(other)
	require.Equal(t, uint64(2), id)
	require.NoError(t, a.Renew())
	id, _ = a.find(mem)
	require.Equal(t, uint64(1), id)
	fd, _, err = a.duplicate(1)
	require.NoError(t, err)
	again, err := attach(fd, size)
	require.NoError(t, err)
	require.NoError(t, unix.Close(fd))
	require.Equal(t, mem, again)
	require.NoError(t, unix.Munmap(again))

	require.NoError(t, a.reclaim(2, 0, 10), "no other process has it")
	_, _, err = a.duplicate(2)
	require.Error(t, err)
	require.NoError(t, a.Renew())
	require.NoError(t, a.reclaim(1, 0, size))
	require.NoError(t, a.Close())
	require.ErrorIs(t, a.reclaim(1, 0, size), unix.EBADF)
}
