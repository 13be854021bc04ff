package nn

import (
	"iter"
	"math/bits"
)

// A RowSet is a set of rows of a table: a parameter of shape (rows, width). The zero value
// is of a table without rows.
type RowSet struct {
	rows int
	bits []uint64 // allocated by the first Add
}

// NewRowSet returns an empty set of rows of a table with this many.
func NewRowSet(rows int) *RowSet { return &RowSet{rows: rows} }

// Add adds rows of the table, in any order.
func (s *RowSet) Add(rows []int32) {
	s.grow()
	for _, r := range rows {
		s.bits[r/64] |= 1 << (r % 64)
	}
}

// AddAll adds all rows of the table.
func (s *RowSet) AddAll() {
	s.grow()
	for i := range s.bits {
		s.bits[i] = ^uint64(0)
	}
	if rest := s.rows % 64; rest > 0 {
		s.bits[len(s.bits)-1] = 1<<rest - 1
	}
}

func (s *RowSet) grow() {
	if s.bits == nil {
		s.bits = make([]uint64, (s.rows+63)/64)
	}
}

// Clear removes all rows.
func (s *RowSet) Clear() { clear(s.bits) }

// Len returns the number of rows in the set.
func (s *RowSet) Len() int {
	n := 0
	for _, word := range s.bits {
		n += bits.OnesCount64(word)
	}
	return n
}

// All returns the rows in the set, in ascending order.
func (s *RowSet) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, word := range s.bits {
			for ; word != 0; word &= word - 1 {
				if !yield(64*i + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}
