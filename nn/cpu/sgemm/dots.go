package sgemm

import "unsafe"

const (
	// dotColumns is the number of columns of the narrower dots kernels.
	dotColumns = 16
	// farRows is how many elements apart rows of a transposed B lie if all must share a set of
	// the L1 cache, which has eight lines or a few more.
	farRows = 1024
)

// dots is what a dots kernel computes: a few rows and columns of C. All steps are in bytes.
// tools/sgemmgen has the same list of fields.
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
func (x *blocked) transposed(add bool) (columns int) {
	if !x.b.Transposed || x.a.Transposed || x.M > x.kernels.dotRows {
		return 0
	}
	d := &x.dots
	d.rowA, d.rowB, d.rowC = bytes(x.a.Stride), bytes(x.b.Stride), bytes(x.c.Stride)
	for n := len(x.kernels.dots) - 1; n > 0; n-- {
		kernels, rows := x.kernels.dots[n], x.M
		if n == 1 && rows >= len(kernels) { // in two halves
			rows = (rows + 1) / 2
		}
		if rows >= len(kernels) || kernels[rows] == nil || x.displaced(n) {
			continue
		}
		for width := n * dotColumns; x.N-columns >= width; columns += width {
			x.dotProducts(kernels, rows, columns, columns+width, add)
		}
	}
	*d = dots{} // release the matrices
	return columns
}

// displaced reports whether n times dotColumns rows of B displace each other from the L1 cache
// before all of a line is used. Packing then takes less time.
func (x *blocked) displaced(n int) bool {
	far := farRows
	switch {
	case n == 2: // at a quarter of the distance, 32 rows need all lines of four sets
		far = farRows / 4
	case x.M > 4: // at half of it, 16 rows need all lines of two sets, and leave none to A
		far = farRows / 2
	}
	return x.b.Stride%far == 0
}

// dotProducts computes the columns of C from first to end, the given number of rows at a
// time. kernels are those for that many columns, by number of rows.
func (x *blocked) dotProducts(kernels []func(*dotsWords), rows, first, end int, add bool) {
	d := &x.dots
	for from := 0; from < x.K; from += Block {
		block := min(Block, x.K-from)
		d.b, d.whole, d.rest = &x.b.Data[first*x.b.Stride+from], block&^3, block&3
		if d.rest > 0 {
			d.tail = x.packTail(first, end, from+d.whole, d.rest)
		}
		d.add = 0
		if add || from > 0 {
			d.add = 1
		}
		for i := 0; i < x.M; i += rows {
			d.a, d.c = &x.a.Data[i*x.a.Stride+from], &x.c.Data[i*x.c.Stride+first]
			kernels[min(rows, x.M-i)](d.words())
		}
	}
}

// packTail packs columns of a transposed B for a few steps of the inner dimension.
func (x *blocked) packTail(first, end, from, steps int) *float32 {
	columns := end - first
	reserve(&x.right, columns*steps)
	for c := range columns {
		for k, v := range x.b.Data[(first+c)*x.b.Stride+from:][:steps] {
			x.right[k*columns+c] = v
		}
	}
	return &x.right[0]
}
