package sgemm

import "unsafe"

const (
	// dotColumns is the number of columns of the narrower dots kernels.
	dotColumns = 16
	// farRows is the stride of a transposed B, in elements, at which all its rows map to one
	// set of the L1 cache. A set has eight lines or a few more.
	farRows = 1024
)

// dots is what a dots kernel computes: a few rows and columns of C. All steps are in bytes.
// A narrow kernel gets A for b and B for a. tools/sgemmgen has the same list of fields.
type dots struct {
	a, b, c          *float32
	rowA, rowB, rowC uintptr
	whole            int      // steps of the inner dimension, a multiple of 4
	rest             int      // steps after those, for which
	tail             *float32 // has b, packed
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
		d.b = &x.b.Data[first*x.b.Stride+from]
		x.steps(x.b, first, end, from, add)
		for i := 0; i < x.M; i += rows {
			d.a, d.c = &x.a.Data[i*x.a.Stride+from], &x.c.Data[i*x.c.Stride+first]
			kernels[min(rows, x.M-i)](d.words())
		}
	}
}

// steps sets the fields for the block of the inner dimension that begins at from. The rows of
// m from first to end, which the kernel transposes, lie along it.
func (x *blocked) steps(m Matrix, first, end, from int, add bool) {
	d, block := &x.dots, min(Block, x.K-from)
	d.whole, d.rest = block&^3, block&3
	d.add = 0
	if add || from > 0 {
		d.add = 1
	}
	if d.rest == 0 {
		return
	}
	rows := end - first
	reserve(&x.right, rows*d.rest)
	for r := range rows {
		for k, v := range m.Data[(first+r)*m.Stride+from+d.whole:][:d.rest] {
			x.right[k*rows+r] = v
		}
	}
	d.tail = &x.right[0]
}
