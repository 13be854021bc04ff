package shm

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/calibration"
)

// isolated is the Under of a rank that hears nothing from the others, like a
// stopped rank.
type isolated struct {
	once   sync.Once
	failed chan struct{}
	cause  error
}

func (u *isolated) Abort(cause *collective.RankError) {
	u.once.Do(func() {
		u.cause = cause
		close(u.failed)
	})
}

func (u *isolated) Err() error {
	select {
	case <-u.failed:
		return u.cause
	default:
		return nil
	}
}

func (u *isolated) Failed() <-chan struct{}           { return u.failed }
func (u *isolated) Left(int) bool                     { return false }
func (u *isolated) Begun(*collective.Header)          {}
func (u *isolated) Behind(uint64) (rank int, ok bool) { return 0, false }
func (u *isolated) Streams(int) int                   { return 1 }

func (u *isolated) Close() error {
	u.Abort(&collective.RankError{Err: collective.ErrClosed})
	return nil
}

func (u *isolated) Send(context.Context, int, *collective.Header, [][]byte) error { return u.Err() }
func (u *isolated) Recv(context.Context, int, *collective.Header, [][]byte) error { return u.Err() }

// A testRank is one rank of a host. Each has its own mapping of the memory.
type testRank struct {
	*Transport
	arenas *Arenas
}

const readLeast = 4 << 20

// reading makes ranks read large vectors, even if copies are faster here.
var reading = calibration.Policy{Fixed: map[string]int{"read-least": readLeast, "read-most": 32 << 20}}

// newHost returns the ranks of a host. None of them hears when another fails.
func newHost(t *testing.T, size int) []testRank {
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
	ps := make([]testRank, size)
	for r := range ps {
		mem, err := attachRegion(fd, l)
		require.NoError(t, err)
		mine := v
		mine.Self = r
		arenas := new(Arenas)
		s := &setup{view: mine, under: &isolated{failed: make(chan struct{})}, ranks: ranks, layout: l, options: Options{Arenas: arenas}}
		require.NoError(t, s.sign(mem))
		ps[r] = testRank{newTransport(s, mem, size == readers), arenas}
		ps[r].adopt(reading.Fix(calibration.Default(size)))
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

// sum returns the AllReduce of a vector.
func (p testRank) sum(s []int64) *collective.Operation {
	v := collective.Of(s)
	return &collective.Operation{
		Header: collective.Header{Job: 7, Epoch: 1, Seq: p.calls + 1, Call: collective.Call{Kind: collective.KindAllReduce, DType: collective.Int64, Op: collective.Sum, Count: uint64(len(s))}},
		Dst:    v, Src: v,
	}
}

// begin begins a call. It returns when this rank has compared the call with those
// of all others and is about to fold, as if the rank were stopped there. goOn
// carries out the rest.
func (p testRank) begin(o *collective.Operation) (goOn func() error, err error) {
	r, err := p.ready(o)
	if err != nil {
		return nil, err
	}
	c, err := r.planSteps()
	return func() error {
		for {
			s, ok := c.next()
			if !ok {
				return p.checkWithdrawn(c.way)
			}
			if err := r.perform(&c, s); err != nil {
				return err
			}
		}
	}, err
}

// vector returns n elements, all 1, in the middle of a larger piece of the rank's
// memory.
func (p testRank) vector(t *testing.T, n int, inArena bool) []int64 {
	s := make([]int64, n+1000)
	if inArena {
		_, err := p.arenas.Alloc(100) // so that the number of the arena is not 1
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

// The calls in which one rank continues after those of the others have failed.
var stopped = []struct {
	name    string
	size    int
	n       int
	inArena bool
}{
	{"in place", 3, 300_000, true},
	{"in place, two ranks", 2, 2000, true},
	{"by read", 2, 512 << 10, false},
	{"by copy", 3, 100_000, false},
}

// When a call has failed, its vector is the caller's. A rank that was stopped
// during the call and continues later does not change the vector, and its own call
// fails if it reads what the caller has written there.
func TestFailedCallGivesMemoryBack(t *testing.T) {
	for _, c := range stopped {
		t.Run(c.name, func(t *testing.T) {
			ps := newHost(t, c.size)
			late := ps[c.size-1]
			var vectors [][]int64
			for _, p := range ps {
				vectors = append(vectors, p.vector(t, c.n, c.inArena))
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
			late.Abort(&collective.RankError{Rank: 0, Err: assert.AnError}) // only now can it know
			assert.ErrorIs(t, goOn(), assert.AnError)
			for r := range ps[:c.size-1] {
				require.Equal(t, -1, slices.IndexFunc(vectors[r], func(x int64) bool { return x != -1000 }), "rank %d", r)
			}
		})
	}
}

// A call fails if it has read the vector of a rank whose own call had failed, even
// if all flags say that the call is complete.
func TestResultOfFailedCallIsRefused(t *testing.T) {
	for _, c := range stopped[:3] {
		t.Run(c.name, func(t *testing.T) {
			ps := newHost(t, c.size)
			calls := begin(t, ps, c.n, c.inArena)
			require.ErrorIs(t, ps[0].withdraw(assert.AnError), assert.AnError) // the others cannot tell this from a failure after all its flags were raised
			var others sync.WaitGroup
			for _, call := range calls[1:] {
				others.Go(func() { assert.ErrorIs(t, call(), assert.AnError) })
			}
			require.NoError(t, calls[0]()) // all others have raised their flags
			for _, p := range ps[1:] {
				p.Abort(&collective.RankError{Rank: 0, Err: assert.AnError})
			}
			others.Wait()
		})
	}
}

// begin begins a call on all ranks.
func begin(t *testing.T, ps []testRank, n int, inArena bool) []func() error {
	begun := make([]func() error, len(ps))
	var all sync.WaitGroup
	for r, p := range ps {
		s := p.vector(t, n, inArena)
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
