package shm

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective"
)

// lonely is the Under of a rank that hears nothing of the others, as one that is
// stopped.
type lonely struct {
	once   sync.Once
	failed chan struct{}
	cause  error
}

func (u *lonely) Abort(cause *collective.RankError) {
	u.once.Do(func() {
		u.cause = cause
		close(u.failed)
	})
}

func (u *lonely) Err() error {
	select {
	case <-u.failed:
		return u.cause
	default:
		return nil
	}
}

func (u *lonely) Failed() <-chan struct{}           { return u.failed }
func (u *lonely) Left(int) bool                     { return false }
func (u *lonely) Begun(*collective.Header)          {}
func (u *lonely) Behind(uint64) (rank int, ok bool) { return 0, false }
func (u *lonely) Streams(int) int                   { return 1 }

func (u *lonely) Close() error {
	u.Abort(&collective.RankError{Err: collective.ErrClosed})
	return nil
}

func (u *lonely) Send(context.Context, int, *collective.Header, [][]byte) error { return u.Err() }
func (u *lonely) Recv(context.Context, int, *collective.Header, [][]byte) error { return u.Err() }

// A party is one rank of a host, each of which has mapped the memory for itself.
type party struct {
	*Transport
	arenas *Arenas
}

// parties are the ranks of a host, of which none hears of another's end.
func parties(t *testing.T, size int) []party {
	v := collective.View{Job: 7, Epoch: 1}
	var ranks []int
	for r := range size {
		v.Members = append(v.Members, collective.Member{Name: fmt.Sprint("n/", r), Nonce: uint64(5 + r), Host: 1})
		ranks = append(ranks, r)
	}
	l := newLayout(size)
	fd, err := create(l.total, reserve)
	require.NoError(t, err)
	defer unix.Close(fd)
	ps := make([]party, size)
	for r := range ps {
		mem, err := attachRegion(fd, l)
		require.NoError(t, err)
		mine := v
		mine.Self = r
		arenas := new(Arenas)
		s := &setup{view: mine, under: &lonely{failed: make(chan struct{})}, ranks: ranks, layout: l, options: Options{Arenas: arenas}}
		require.NoError(t, s.sign(mem))
		ps[r] = party{newTransport(s, mem, size == readers), arenas}
	}
	t.Cleanup(func() {
		for _, p := range ps {
			assert.NoError(t, p.Close())
			p.free()
			assert.NoError(t, p.arenas.Close())
		}
	})
	return ps
}

// sum is an AllReduce of a vector.
func (p party) sum(s []int64) *collective.Operation {
	v := collective.Of(s)
	return &collective.Operation{
		Header: collective.Header{Job: 7, Epoch: 1, Seq: p.calls + 1, Call: collective.Call{Kind: collective.KindAllReduce, DType: collective.Int64, Op: collective.Sum, Count: uint64(len(s))}},
		Dst:    v, Src: v,
	}
}

// begin makes a call up to where this rank has compared it with everybody's and
// is about to fold, as a rank that is stopped there; goOn makes the rest.
func (p party) begin(o *collective.Operation) (goOn func() error, err error) {
	r, err := p.ready(o)
	if err != nil {
		return nil, err
	}
	c, err := r.plot()
	return func() error {
		for {
			s, ok := c.next()
			if !ok {
				return p.whole(c.way)
			}
			if err := r.take(&c, s); err != nil {
				return err
			}
		}
	}, err
}

// vector is n elements of a rank's memory, among others, all of them 1; in place
// or not.
func (p party) vector(t *testing.T, n int, placed bool) []int64 {
	s := make([]int64, n+1000)
	if placed {
		_, err := p.arenas.Alloc(100) // another one before it
		require.NoError(t, err)
		mem, err := p.arenas.Alloc(8 * len(s))
		require.NoError(t, err)
		v, err := collective.OfBytes(mem, collective.Int64)
		require.NoError(t, err)
		s = collective.Elements[int64](v)
	}
	for i := range s {
		s[i] = 1
	}
	return s[700:][:n]
}

// Where a call goes on although some rank's has failed.
var stopped = []struct {
	name   string
	size   int
	n      int
	placed bool
}{
	{"in place", 3, 300_000, true},
	{"in place of two", 2, 2000, true},
	{"by read", 2, readChunk, false},
	{"by copy", 3, 100_000, false},
}

// When a call has failed, its vector is the caller's: a rank that was stopped in
// the midst of the call, and goes on later, changes nothing in it; and it cannot
// take what the caller then writes there for operands.
func TestFailedCallGivesMemoryBack(t *testing.T) {
	for _, c := range stopped {
		t.Run(c.name, func(t *testing.T) {
			ps := parties(t, c.size)
			late := ps[c.size-1]
			var vectors [][]int64
			for _, p := range ps {
				vectors = append(vectors, p.vector(t, c.n, c.placed))
			}
			var others sync.WaitGroup
			for r, p := range ps[:c.size-1] {
				others.Go(func() {
					assert.ErrorIs(t, p.AllReduce(p.sum(vectors[r])), assert.AnError)
				})
			}
			goOn, err := late.begin(late.sum(vectors[c.size-1]))
			require.NoError(t, err)
			for _, p := range ps[:c.size-1] {
				p.Abort(&collective.RankError{Rank: c.size - 1, Err: assert.AnError})
			}
			others.Wait()
			for r := range ps[:c.size-1] {
				for i := range vectors[r] {
					vectors[r][i] = -1000
				}
			}
			late.Abort(&collective.RankError{Rank: 0, Err: assert.AnError}) // it hears of it only when it looks
			assert.ErrorIs(t, goOn(), assert.AnError)
			for r := range ps[:c.size-1] {
				require.Equal(t, -1, slices.IndexFunc(vectors[r], func(x int64) bool { return x != -1000 }), "rank %d", r)
			}
		})
	}
}

// A rank does not take for a result what it has read from one whose call had
// failed, even if all flags say that it is done.
func TestResultOfFailedCallIsRefused(t *testing.T) {
	for _, c := range stopped[:3] {
		t.Run(c.name, func(t *testing.T) {
			ps := parties(t, c.size)
			calls := begin(t, ps, c.n, c.placed)
			require.ErrorIs(t, ps[0].withdraw(assert.AnError), assert.AnError) // after all its posts, as far as the others can tell
			var others sync.WaitGroup
			for _, call := range calls[1:] {
				others.Go(func() { assert.ErrorIs(t, call(), assert.AnError) })
			}
			require.NoError(t, calls[0]()) // all others have made their posts
			for _, p := range ps[1:] {
				p.Abort(&collective.RankError{Rank: 0, Err: assert.AnError})
			}
			others.Wait()
		})
	}
}

// begin begins a call of all ranks.
func begin(t *testing.T, ps []party, n int, placed bool) []func() error {
	begun := make([]func() error, len(ps))
	var all sync.WaitGroup
	for r, p := range ps {
		s := p.vector(t, n, placed)
		all.Go(func() {
			var err error
			begun[r], err = p.begin(p.sum(s))
			assert.NoError(t, err)
		})
	}
	all.Wait()
	require.False(t, t.Failed())
	return begun
}

// What is taken back keeps its contents and loses no write that comes meanwhile,
// wherever in the piece; nobody is given it, and no call finds it in place, until
// it is renewed.
func TestTakeBack(t *testing.T) {
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
	busy := []int{from - 8, from + n + 8} // in the same pages as the part, and not of it
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
	require.NoError(t, a.takeBack(1, from, n))
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

	require.NoError(t, a.takeBack(2, 0, 10), "which nobody has been given")
	_, _, err = a.duplicate(2)
	require.Error(t, err)
	require.NoError(t, a.Renew())
	require.NoError(t, a.takeBack(1, 0, size))
	require.NoError(t, a.Close())
	require.ErrorIs(t, a.takeBack(1, 0, size), unix.EBADF)
}
