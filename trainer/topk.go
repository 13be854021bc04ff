package trainer

import (
	"encoding/binary"
	"fmt"
	"math"
)

// ringBlock is the number of elements in a block of ring order; see package
// collective.
const ringBlock = 4096

// entryLen is the size of a kept element: its index in the bucket and its value, each
// little-endian in 32 bits.
const entryLen = 8

// keepLargest packs the k elements of x with the greatest magnitude into b, which has
// k*entryLen bytes, in index order, and sets rest to x without them. Of equal
// elements it keeps those with lower indices.
func keepLargest(b []byte, rest, x []float32, k int) {
	copy(rest, x)
	least, equal := threshold(x, k)
	for i, v := range x {
		m := magnitude(v)
		if m < least || m == least && equal == 0 {
			continue
		}
		if m == least {
			equal--
		}
		binary.LittleEndian.PutUint32(b, uint32(i))
		binary.LittleEndian.PutUint32(b[4:], math.Float32bits(v))
		b, rest[i] = b[entryLen:], 0
	}
}

// magnitude orders elements by |v|; NaN is the greatest.
func magnitude(v float32) uint32 { return math.Float32bits(v) &^ (1 << 31) }

// threshold returns the least magnitude among the k greatest of x, and how many of
// the k have it. It is a radix select, from the upper bits down.
func threshold(x []float32, k int) (least uint32, equal int) {
	const step, mask = 11, 1<<11 - 1
	known := uint32(0) // bits of the result known so far
	for shift := 31 - step; ; shift -= step {
		shift = max(shift, 0)
		var counts [1 << step]int
		for _, v := range x {
			if m := magnitude(v); m&known == least {
				counts[m>>shift&mask]++
			}
		}
		digit := uint32(mask)
		for ; counts[digit] < k; digit-- {
			k -= counts[digit]
		}
		least |= digit << shift
		known |= mask << shift
		if shift == 0 {
			return least, k
		}
	}
}

// sumEntries sets dst, which begins at index at of its arena, to the sum of what all
// ranks kept of it, packed by keepLargest, in ring order. cursors is scratch space for
// one number per rank.
func sumEntries(dst []float32, at int, packed [][]byte, cursors []int) error {
	clear(dst)
	clear(cursors)
	size := len(packed)
	for lo := 0; lo < len(dst); {
		block := (at + lo) / ringBlock
		hi := min(lo+(block+1)*ringBlock-(at+lo), len(dst))
		for i := range size {
			r := (block + i) % size
			b := packed[r]
			for ; cursors[r] < len(b); cursors[r] += entryLen {
				e := b[cursors[r]:]
				index := int(binary.LittleEndian.Uint32(e))
				if index >= hi {
					break
				}
				if index < lo {
					return fmt.Errorf("trainer: what rank %d kept is not in order: index %d", r, index)
				}
				dst[index] += math.Float32frombits(binary.LittleEndian.Uint32(e[4:]))
			}
		}
		lo = hi
	}
	for r, b := range packed {
		if cursors[r] < len(b) {
			return fmt.Errorf("trainer: what rank %d kept is beyond the bucket of %d elements", r, len(dst))
		}
	}
	return nil
}
