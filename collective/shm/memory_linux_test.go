package shm_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/shm"
)

// Vectors of at least 4 MiB outside Arenas are read from the other processes.
const readBytes = 4 << 20

func TestMemoryInPlace(t *testing.T) { testMemory(t, func(int) bool { return true }, 300_000) }

func TestMemoryOfSomeInPlace(t *testing.T) {
	testMemory(t, func(rank int) bool { return rank%2 == 1 }, 300_000)
}

func TestMemoryOfSomeByRead(t *testing.T) {
	testMemory(t, func(rank int) bool { return rank%2 == 0 }, readBytes)
}

func TestMemoryByRead(t *testing.T) { testMemory(t, func(int) bool { return false }, readBytes) }

func TestLendingInPlace(t *testing.T) { testLending(t, func(int) bool { return true }, 100_000) }

func TestLendingOfSome(t *testing.T) {
	testLending(t, func(rank int) bool { return rank%2 == 0 }, 100_000)
}

func TestLendingByRead(t *testing.T) { testLending(t, func(int) bool { return false }, readBytes) }

func testLending(t *testing.T, inArenas func(rank int) bool, least int) {
	connect, allocate := inMemory(inArenas)
	collectivetest.TestLending(t, connect, allocate, least)
}

// testMemory runs the suite with vectors in Arenas on the ranks for which inArenas
// returns true, and in ordinary memory on the others.
func testMemory(t *testing.T, inArenas func(rank int) bool, least int) {
	connect, allocate := inMemory(inArenas)
	collectivetest.TestMemory(t, connect, allocate, least)
}

// inMemory returns ranks that have Arenas, and allocates vectors there or in ordinary memory.
func inMemory(inArenas func(rank int) bool) (collectivetest.Maker, collectivetest.Allocator) {
	var arenas []*shm.Arenas // by rank
	return func(t testing.TB, n int) []*collective.Group {
			arenas = make([]*shm.Arenas, n)
			for r := range n {
				arenas[r] = new(shm.Arenas)
				t.Cleanup(func() { assert.NoError(t, arenas[r].Close()) })
			}
			views, transports, errs := join(t, n, oneHost, func(r int) shm.Options { return shm.Options{Must: true, Arenas: arenas[r]} })
			for r := range errs {
				require.NoError(t, errs[r])
			}
			return collectivetest.Groups(t, views, transports, collective.Options{})
		}, func(t testing.TB, rank, bytes int) []byte {
			if !inArenas(rank) {
				b, _ := collective.Of(make([]int64, (bytes+7)/8)).Host()
				return b
			}
			b, err := arenas[rank].Alloc(bytes)
			require.NoError(t, err)
			return b
		}
}

func TestOrders(t *testing.T) {
	collectivetest.TestOrders(t, func(t testing.TB, n int) ([]collective.View, []collective.Transport) {
		return connect(t, n, oneHost, shm.Options{Must: true})
	})
}

func TestOrdersMixed(t *testing.T) {
	collectivetest.Slow(t) // TestOrders has one host
	collectivetest.TestOrders(t, func(t testing.TB, n int) ([]collective.View, []collective.Transport) {
		return connect(t, n, twoHosts, shm.Options{})
	})
}
