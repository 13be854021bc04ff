package bench

import (
	"math"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective/fold"
)

// A Memory is how fast several threads together move bytes to and from memory,
// in 1e9 bytes a second. Every byte that the program reads or writes counts: two
// for each byte copied, and three for each that is added to another. What a
// processor does besides, such as reading what a copy overwrites, does not.
type Memory struct {
	Threads int     `json:"threads"`
	Bytes   int     `json:"bytes"` // of one vector; each thread has two
	Copy    float64 `json:"copy"`  // a[i] = b[i]
	Add     float64 `json:"add"`   // a[i] += b[i], float32
}

// memoryPasses are how often each is done: the best counts, as for a limit it
// must.
const memoryPasses = 7

// MeasureMemory measures with so many threads, each on vectors of its own of so
// many bytes, a multiple of four.
func MeasureMemory(threads, bytes int) Memory {
	count := bytes / float32Bytes
	a, b := make([][]float32, threads), make([][]float32, threads)
	together(threads, func(i int) {
		a[i], b[i] = make([]float32, count), make([]float32, count)
		for j := range count { // nothing of it is the page of zeros that is not written yet
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

// float32Bytes is the bytes of a float32.
const float32Bytes = 4

// together runs work on so many goroutines and returns the nanoseconds until
// all are done, so that bytes by them are 1e9 bytes a second.
func together(threads int, work func(i int)) float64 {
	var all sync.WaitGroup
	begin := time.Now()
	for i := range threads {
		all.Go(func() { work(i) })
	}
	all.Wait()
	return math.Max(1, float64(time.Since(begin)))
}

// AllReduceBound is the least microseconds that an allreduce of so many bytes
// takes ranks whose vectors lie in this memory: each rank's input must be read
// and each rank's result written, and no more than that, 2*ranks*bytes, has to
// move at the faster of the two speeds. Only what stays in caches from one use
// to the next can be faster.
func (m Memory) AllReduceBound(ranks, bytes int) float64 {
	return 2 * float64(ranks) * float64(bytes) / max(m.Copy, m.Add) / 1e3
}
