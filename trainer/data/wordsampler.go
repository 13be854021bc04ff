package data

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
)

// WordSampler is a Sampler of documents, in batches of about a given number of words. Its
// results depend only on its settings: steps can be requested in any order, on any rank.
// A step far ahead takes as long as dividing all epochs before it.
//
// The documents of an epoch are in the order that a Sampler gives them. WordBatches divides
// them into the global batches of size ranks, each of size times the words of one rank. So
// size ranks together see exactly the documents that one rank with size times the words
// sees. Within a global batch the documents are in an order that gives every rank about the
// same number of words: rank r takes every size-th, starting with r.
//
// A WordSampler belongs to one goroutine at a time.
type WordSampler struct {
	words      []int32 // [documents]
	batches    WordBatches
	rank, size int
	seed       uint64

	starts []epochStart // of the epochs so far
	epoch  int          // the epoch of order and ends; -1 before the first
	perm   []int32
	order  []int32 // documents by batch
	ends   []int32 // [batches] the index in order of the first document after each
	mine   []int32 // last result of Step
}

// An epochStart is what earlier epochs have used.
type epochStart struct{ step, sizes int }

// NewWordSampler returns the sampler of rank (0 .. size-1) for documents with these numbers
// of words, which the sampler keeps. All ranks must use the same words, batches, size and
// seed.
func NewWordSampler(words []int32, batches WordBatches, rank, size int, seed uint64) (*WordSampler, error) {
	switch {
	case len(words) < 1 || len(words) > math.MaxInt32:
		return nil, fmt.Errorf("data: the documents of a sampler must be from 1 to %d, not %d", math.MaxInt32, len(words))
	case size < 1 || rank < 0 || rank >= size:
		return nil, fmt.Errorf("data: there is no rank %d of %d; ranks count from 0", rank, size)
	case !(batches.Tolerance >= 0):
		return nil, fmt.Errorf("data: the tolerance of batches must be at least 0, not %v", batches.Tolerance)
	}
	s := &WordSampler{words: words, batches: batches, rank: rank, size: size, seed: seed, epoch: -1, starts: []epochStart{{}}}
	s.load(0)
	if len(s.ends) == 0 {
		return nil, errors.New("data: every document is longer than a batch, and discarded; raise the size of batches, or keep long documents")
	}
	return s, nil
}

// Step returns this rank's documents at a step (counted from 0 across all epochs), and the
// number of documents of all ranks together. Local document i is document rank+i*size of
// the global batch. There may be none. The slice is valid until the next call.
func (s *WordSampler) Step(step int) (rows []int32, global int) {
	if step < 0 {
		return nil, 0
	}
	batch := s.batch(step)
	s.mine = s.mine[:0]
	for i := s.rank; i < len(batch); i += s.size {
		s.mine = append(s.mine, batch[i])
	}
	return s.mine, len(batch)
}

// Epoch returns the epoch of a step, from 0.
func (s *WordSampler) Epoch(step int) int {
	s.batch(step)
	return s.epoch
}

// batch returns the global batch of a step.
func (s *WordSampler) batch(step int) []int32 {
	epoch := sort.Search(len(s.starts), func(e int) bool { return s.starts[e].step > step }) - 1
	for s.load(epoch); step >= s.starts[epoch].step+len(s.ends); s.load(epoch) {
		epoch++
	}
	k, lo := step-s.starts[epoch].step, int32(0)
	if k > 0 {
		lo = s.ends[k-1]
	}
	return s.order[lo:s.ends[k]]
}

// load divides an epoch. All earlier epochs have been loaded once.
func (s *WordSampler) load(epoch int) {
	if s.epoch == epoch {
		return
	}
	s.perm = shuffled(s.perm, len(s.words), s.seed, epoch)
	start := s.starts[epoch]
	sizes := s.divide(s.batches, start.sizes)
	if len(s.ends) == 0 && epoch > 0 { // sizes have shrunk, and an epoch has at least one step
		keep := s.batches
		keep.DiscardOversize = false
		sizes = s.divide(keep, start.sizes)
	}
	s.epoch = epoch
	if epoch == len(s.starts)-1 {
		s.starts = append(s.starts, epochStart{start.step + len(s.ends), sizes})
	}
}

// divide sets order and ends for the current permutation.
func (s *WordSampler) divide(batches WordBatches, sizes int) int {
	s.order, s.ends = s.order[:0], s.ends[:0]
	return batches.split(s.perm, s.words, s.size, sizes, func(batch []int32) {
		lo := len(s.order)
		s.order = append(s.order, batch...)
		s.balance(s.order[lo:])
		s.ends = append(s.ends, int32(len(s.order)))
	})
}

// balance orders a batch by words, the most first, and then reverses every second group of
// size documents, so that the rank that takes the longest of one group takes the shortest
// of the next.
func (s *WordSampler) balance(batch []int32) {
	slices.SortStableFunc(batch, func(a, b int32) int { return cmp.Compare(s.words[b], s.words[a]) })
	for lo := s.size; lo < len(batch); lo += 2 * s.size {
		slices.Reverse(batch[lo:min(lo+s.size, len(batch))])
	}
}
