package data

import (
	"fmt"
	"math"
)

// Sampler determines which rows a rank trains on in each step. Its results depend only on
// its settings: steps can be requested in any order, on any rank, and a restarted rank
// gets the same rows again.
//
// An epoch is one permutation of all rows, drawn from (seed, epoch). Step s of an epoch
// takes the next size*batch rows of it, the step's global batch. Rank r takes every
// size-th of these rows, starting with row r. So size ranks with batch B together see
// exactly the rows that one rank with batch size*B sees, and each epoch visits each row
// once. The last global batch of an epoch holds the remaining rows, where a rank may get
// one row fewer than another, or none. A global batch never extends into the next epoch.
//
// A Sampler belongs to one goroutine at a time.
type Sampler struct {
	rows, batch, rank, size int
	seed                    uint64

	epoch int     // the epoch of perm; -1 before the first
	perm  []int32 // [rows]
	mine  []int32 // last result of Step
}

// NewSampler returns the sampler of rank (0 .. size-1) for a training set with the given
// number of rows, with batch rows per rank and step. All ranks must use the same rows,
// batch, size and seed.
func NewSampler(rows, batch, rank, size int, seed uint64) (*Sampler, error) {
	switch {
	case rows < 1 || rows > math.MaxInt32:
		return nil, fmt.Errorf("data: the rows of a sampler must be from 1 to %d, not %d", math.MaxInt32, rows)
	case batch < 1 || batch > math.MaxInt32:
		return nil, fmt.Errorf("data: the batch of a rank must be from 1 to %d rows, not %d", math.MaxInt32, batch)
	case size < 1 || size > math.MaxInt32 || rank < 0 || rank >= size:
		return nil, fmt.Errorf("data: there is no rank %d of %d; ranks count from 0", rank, size)
	}
	return &Sampler{rows: rows, batch: batch, rank: rank, size: size, seed: seed, epoch: -1}, nil
}

// StepsPerEpoch returns the number of steps that visit every row once, including a
// partial last step.
func (s *Sampler) StepsPerEpoch() int {
	return int((int64(s.rows) + s.global() - 1) / s.global())
}

// Epoch returns the epoch of a step, from 0.
func (s *Sampler) Epoch(step int) int { return step / s.StepsPerEpoch() }

// Step returns this rank's rows at a step (counted from 0 across all epochs), and the
// number of rows of all ranks together, by which to divide for a mean gradient. Local row
// i is row rank+i*size of the global batch. The slice is valid until the next call. A
// negative step has no rows.
func (s *Sampler) Step(step int) (rows []int32, global int) {
	if step < 0 {
		return nil, 0
	}
	steps := s.StepsPerEpoch()
	s.shuffle(s.Epoch(step))
	lo := int64(step%steps) * s.global()
	hi := min(lo+s.global(), int64(s.rows))
	s.mine = s.mine[:0]
	for i := lo + int64(s.rank); i < hi; i += int64(s.size) {
		s.mine = append(s.mine, s.perm[i])
	}
	return s.mine, int(hi - lo)
}

// count returns the number of rows of this rank at a step, and of all ranks.
func (s *Sampler) count(step int) (mine, all int) {
	lo := int64(step%s.StepsPerEpoch()) * s.global()
	all = int(min(s.global(), int64(s.rows)-lo))
	return (all - s.rank + s.size - 1) / s.size, all
}

// perEpoch returns the number of rows of this rank in an epoch.
func (s *Sampler) perEpoch() int {
	n := 0
	for step := range s.StepsPerEpoch() {
		mine, _ := s.count(step)
		n += mine
	}
	return n
}

// global returns the number of rows in a full global batch.
func (s *Sampler) global() int64 { return int64(s.batch) * int64(s.size) }

// shuffle sets perm to the permutation of an epoch.
func (s *Sampler) shuffle(epoch int) {
	if s.epoch != epoch {
		s.perm, s.epoch = shuffled(s.perm, s.rows, s.seed, epoch), epoch
	}
}

// shuffled returns a permutation of this many rows, in the memory of perm if that has
// been one. It depends only on rows, seed and epoch.
func shuffled(perm []int32, rows int, seed uint64, epoch int) []int32 {
	perm = Range(perm[:0], 0, rows)
	shuffle(perm, newDraws(seed, uint64(epoch)))
	return perm
}
