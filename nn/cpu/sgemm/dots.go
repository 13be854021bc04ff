package sgemm

import "unsafe"

const (
	// dotColumns is the number of columns of a dots kernel.
	dotColumns = 16
	// Rows of a transposed B that are a multiple of this many elements apart displace each
	// other from the L1 cache, before all of a line is used.
	farRows = 1024
)

// dots is what a dots kernel computes: a few rows of C, and dotColumns columns. All steps are
// in bytes. tools/sgemmgen has the same list of fields.
type dots struct {
	a, b, c          *float32
	rowA, rowB, rowC uintptr
	whole            int      // steps of the inner dimension, a multiple of 4
	rest             int      // steps after those, for which
	tail             *float32 // has B, packed
	add              uintptr  // 1: add the sums to C; 0: store them
}

type dotsWords = [unsafe.Sizeof(dots{}) / 8]uint64

func (d *dots) words() *dotsWords { return (*dotsWords)(unsafe.Pointer(d)) }

// transposed computes the first columns of a product with a transposed B, and returns their
// number. It computes none where packing B takes less time, as it does for many rows.
func (x *blocked) transposed(add bool) int {
	if x.M >= len(x.kernels.dots) || !x.b.Transposed || x.a.Transposed || x.b.Stride%farRows == 0 {
		return 0
	}
	d := &x.dots
	d.rowA, d.rowB, d.rowC = bytes(x.a.Stride), bytes(x.b.Stride), bytes(x.c.Stride)
	columns := x.N / dotColumns * dotColumns
	for j := 0; j < columns; j += dotColumns {
		for from := 0; from < x.K; from += Block {
			block := min(Block, x.K-from)
			d.a, d.b, d.c = &x.a.Data[from], &x.b.Data[j*x.b.Stride+from], &x.c.Data[j]
			d.whole, d.rest = block&^3, block&3
			if d.rest > 0 {
				d.tail = x.packTail(j, from+d.whole, d.rest)
			}
			d.add = 0
			if add || from > 0 {
				d.add = 1
			}
			x.kernels.dots[x.M](d.words())
		}
	}
	*d = dots{} // release the matrices
	return columns
}

// packTail packs dotColumns columns of a transposed B for a few steps of the inner dimension.
func (x *blocked) packTail(j, from, steps int) *float32 {
	reserve(&x.right, dotColumns*steps)
	for c := range dotColumns {
		for k, v := range x.b.Data[(j+c)*x.b.Stride+from:][:steps] {
			x.right[k*dotColumns+c] = v
		}
	}
	return &x.right[0]
}
