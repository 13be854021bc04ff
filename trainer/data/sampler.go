package data

import (
	"fmt"
	"math"
)

// Sampler says which rows a rank trains on at each step. It holds no state that
// matters: any step can be asked for in any order, on any rank, and a restarted
// rank gets the same rows again.
//
// An epoch is one permutation of all rows, drawn from (seed, epoch). Step s of
// an epoch takes the next size*batch rows of it, the step's global batch, and
// rank r takes every size-th row of that, beginning with its r-th. So size ranks
// of batch B see together exactly the rows that one rank of batch size*B sees,
// and each epoch visits each row once. The last global batch of an epoch holds
// what is left; a rank may get one row fewer than another there, or none. A global
// batch never reaches into the next epoch.
//
// A Sampler is for one goroutine at a time.
type Sampler struct {
	rows, batch, rank, size int
	seed                    uint64

	epoch int     // whose permutation perm is; -1 before the first
	perm  []int32 // [rows]
	mine  []int32 // what Step last returned
}

// NewSampler returns the sampler of rank (0 .. size-1) for a training set of
// rows rows, with batch rows per rank and step. All ranks must be given the
// same rows, batch, size and seed.
func NewSampler(rows, batch, rank, size int, seed uint64) (*Sampler, error) {
	switch {
	case rows < 1 || rows > math.MaxInt32:
		return nil, fmt.Errorf("data: a sampler needs 1 to %d rows, got %d", math.MaxInt32, rows)
	case batch < 1 || batch > math.MaxInt32:
		return nil, fmt.Errorf("data: the batch of a rank must be 1 to %d rows, got %d", math.MaxInt32, batch)
	case size < 1 || size > math.MaxInt32 || rank < 0 || rank >= size:
		return nil, fmt.Errorf("data: rank %d of %d does not exist", rank, size)
	}
	return &Sampler{rows: rows, batch: batch, rank: rank, size: size, seed: seed, epoch: -1}, nil
}

// StepsPerEpoch returns how many steps visit every row once, the last, partial
// one included.
func (s *Sampler) StepsPerEpoch() int {
	return int((int64(s.rows) + s.global() - 1) / s.global())
}

// Step returns the rows of this rank at a step (counted from 0 through all
// epochs) and how many rows all ranks have together at it, which is what a mean
// gradient divides by. Local row i is row rank+i*size of the global batch. The
// slice is valid until the next call. There are no rows before step 0.
func (s *Sampler) Step(step int) (rows []int32, global int) {
	if step < 0 {
		return nil, 0
	}
	steps := s.StepsPerEpoch()
	s.shuffle(step / steps)
	lo := int64(step%steps) * s.global()
	hi := min(lo+s.global(), int64(s.rows))
	s.mine = s.mine[:0]
	for i := lo + int64(s.rank); i < hi; i += int64(s.size) {
		s.mine = append(s.mine, s.perm[i])
	}
	return s.mine, int(hi - lo)
}

// count is how many rows this rank has at a step, and how many all ranks have.
func (s *Sampler) count(step int) (mine, all int) {
	lo := int64(step%s.StepsPerEpoch()) * s.global()
	all = int(min(s.global(), int64(s.rows)-lo))
	return (all - s.rank + s.size - 1) / s.size, all
}

// most is how many rows this rank has in an epoch.
func (s *Sampler) most() int {
	n := 0
	for step := range s.StepsPerEpoch() {
		mine, _ := s.count(step)
		n += mine
	}
	return n
}

// global is the number of rows of a full global batch.
func (s *Sampler) global() int64 { return int64(s.batch) * int64(s.size) }

// shuffle makes perm the permutation of an epoch: Fisher and Yates's shuffle
// on draws that depend on (seed, epoch, position) alone.
func (s *Sampler) shuffle(epoch int) {
	if s.epoch == epoch {
		return
	}
	if s.perm == nil {
		s.perm = make([]int32, s.rows)
	}
	for i := range s.perm {
		s.perm[i] = int32(i)
	}
	d := newDraws(s.seed, uint64(epoch))
	for i := len(s.perm) - 1; i > 0; i-- {
		j := d.below(uint64(i), i+1)
		s.perm[i], s.perm[j] = s.perm[j], s.perm[i]
	}
	s.epoch = epoch
}
