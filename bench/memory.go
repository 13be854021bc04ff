package bench

import (
	"math"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective/fold"
)

// A Memory has the speed at which several threads together move bytes to and from
// memory, in 1e9 bytes per second. Every byte that the program reads or writes counts:
// two for each byte copied, three for each byte added to another. What the processor
// does beyond that, such as reading what a copy overwrites, does not count.
type Memory struct {
	Threads int     `json:"threads"`
	Bytes   int     `json:"bytes"` // of one vector; each thread has two
	Copy    float64 `json:"copy"`  // a[i] = b[i]
	Add     float64 `json:"add"`   // a[i] += b[i], float32
}

// memoryPasses is how often each is measured. The best counts, because the result is
// used as a limit.
const memoryPasses = 7

// MeasureMemory measures a number of threads, each on two vectors of its own. bytes is
// the size of a vector, a multiple of four.
func MeasureMemory(threads, bytes int) Memory {
	count := bytes / float32Bytes
	a, b := make([][]float32, threads), make([][]float32, threads)
	together(threads, func(i int) {
		a[i], b[i] = make([]float32, count), make([]float32, count)
		for j := range count { // touch every page, so that none is the shared page of zeros
			a[i][j], b[i][j] = 1, 1
		}
	})
	moved := float64(threads) * float64(count) * float32Bytes
	m := Memory{Threads: threads, Bytes: count * float32Bytes}
	for range memoryPasses {
		m.Copy = max(m.Copy, 2*moved/together(threads, func(i int) { copy(a[i], b[i]) }))
		m.Add = max(m.Add, 3*moved/together(threads, func(i int) { fold.Into(fold.Sum, a[i], a[i], b[i]) }))
	}
	return m
}

// float32Bytes is the size of a float32.
const float32Bytes = 4

// together runs work on a number of goroutines and returns the nanoseconds until all
// are done. Bytes divided by that are 1e9 bytes per second.
func together(threads int, work func(i int)) float64 {
	var all sync.WaitGroup
	begin := time.Now()
	for i := range threads {
		all.Go(func() { work(i) })
	}
	all.Wait()
	return math.Max(1, float64(time.Since(begin)))
}

// AllReduceBound returns the minimum time, in microseconds, of an allreduce between
// ranks whose vectors are in this memory. Each rank's input must be read and each
// rank's result written. These 2*ranks*bytes move at the faster of the two speeds.
// Only data that stay in caches from one use to the next can be faster.
func (m Memory) AllReduceBound(ranks, bytes int) float64 {
	return 2 * float64(ranks) * float64(bytes) / max(m.Copy, m.Add) / 1e3
}
