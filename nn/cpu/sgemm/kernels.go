package sgemm

import "unsafe"

// kernels are the functions of one instruction set.
type kernels struct {
	name  string
	lanes int // elements of a register
	// product computes tiles of C: product[v][r] those of r rows of v registers. There are
	// kernels for all smaller r, and none for product[v][0].
	product [9][]func(*tileWords)
	// wideShort: with a short inner dimension, tiles with 4 registers per row are faster than
	// those with 2, because they take fewer instructions for each multiplication.
	wideShort bool
	// packed computes tiles with 2 registers per row from packed A and B: packed[r] those of r
	// rows. Some are nil.
	packed []func(*tileWords)
	// fewColumns replaces the constant if B is packed, because packed kernels are faster.
	fewColumns int
	// adjacent kernels load several rows of A at once, so A must be packed.
	adjacent bool
	// copy moves rows of up to one register, and writes whole ones.
	copy func(*stripWords)
	// transpose writes count columns, a multiple of 4, each with as many rows as a register
	// has elements.
	transpose func(*stripWords)
	// dots computes columns of C, where B is transposed: dots[n][r] computes r rows and n times
	// dotColumns columns. Some are nil: those with fewer columns are faster. There is one for
	// every number of rows up to half of dotRows and dotColumns columns.
	dots    [3][]func(*dotsWords)
	dotRows int // for more rows of C, packing B takes less time
	// narrow computes a few columns of C, where B is transposed, and as many rows as some
	// registers have elements: narrow[v][n] computes n columns with v registers of rows each.
	// narrow[1] has kernels for more columns than the others.
	narrow     [3][]func(*dotsWords)
	narrowRows int // for more rows of C, and columns that fill registers, packing B takes less time
}

// rows returns the number of rows of the largest tile with v registers per row.
func (k *kernels) rows(v int) int { return len(k.product[v]) - 1 }

// tile returns the kernel for tiles of some rows with v registers per row. packed means that A
// and B are packed.
func (k *kernels) tile(v, rows int, packed bool) func(*tileWords) {
	if packed && v == 2 && rows < len(k.packed) && k.packed[rows] != nil {
		return k.packed[rows]
	}
	return k.product[v][rows]
}

// tiles is what a product kernel computes: count tiles of C below each other. All steps are
// in bytes. tools/sgemmgen has the same list of fields.
type tiles struct {
	a, b, c     *float32
	rowA, stepA uintptr // in A, to the next row and to the next step of the inner dimension
	nextA       uintptr // to the next tile
	stepB       uintptr
	rowC        uintptr
	k           int
	count       int
	add         uintptr   // 1: add the sums to C; 0: store them
	mask        uintptr   // a bit for each column of the last register that exists in C
	lanes       [8]uint32 // the same for AVX2: all bits of each such column
	fetch       uintptr   // 1: fetch C before the loop over the inner dimension; 0: it is near
}

// A strip is what a packing kernel moves. Steps are in bytes. tools/sgemmgen has the same
// list of fields.
type strip struct {
	to, from         *float32
	stepTo, stepFrom uintptr
	count            int
	mask             uintptr
	lanes            [8]uint32
}

// Kernels take structs as words: their generator does not know our types.
type (
	tileWords  = [unsafe.Sizeof(tiles{}) / 8]uint64
	stripWords = [unsafe.Sizeof(strip{}) / 8]uint64
)

func (t *tiles) words() *tileWords { return (*tileWords)(unsafe.Pointer(t)) }

func (s *strip) words() *stripWords { return (*stripWords)(unsafe.Pointer(s)) }

// masks returns the two masks for the first n elements of a register.
func masks(n int) (bits uintptr, lanes [8]uint32) {
	for i := range min(n, len(lanes)) {
		lanes[i] = 1<<32 - 1
	}
	return 1<<n - 1, lanes
}

// fastest returns the kernels to use, or nil for plain Go.
func fastest() *kernels {
	if all := available(); len(all) > 0 {
		return all[0]
	}
	return nil
}
