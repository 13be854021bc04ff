package sgemm

import "unsafe"

const (
	// rowsPerBlock is the approximate number of rows of A that are packed at once: 240 rows of
	// Block elements take 240 KB, half of a small L2 cache.
	rowsPerBlock = 240
	// columnsPerBlock is the number of columns of B that are packed at once. They stay in the
	// L3 cache for all rows of A.
	columnsPerBlock = 1024
)

// Packing pays off if each packed element is read often, or if neighbouring elements lie on
// different pages. Below these limits, products were faster without packing, on a Xeon with
// AVX-512, both with the AVX-512 kernels and with those for AVX2.
const (
	fewRows    = 128 // of C: B is read once for a few of them
	fewColumns = 512 // of C: A is read once for a few of them; see kernels.fewColumns, too
	farApart   = 512 // elements between neighbours in a column of A
	shortInner = 64
)

// Fetching C early takes about as many instructions as a step of the inner dimension. Up to these
// limits, that is more than it saves.
const (
	nearInner = 32
	nearSize  = 1 << 16 // elements of C: 256 KB, which most L2 caches hold
)

// blocked computes products with kernels. It owns their packed operands.
type blocked struct {
	tiles   tiles
	strip   strip
	left    []float32 // packed rows of A
	right   []float32 // packed columns of B
	edge    []float32 // rows at the end of a matrix, where a transpose would read beyond it
	dots    dots
	kernels *kernels
	product
}

// A product is the call in progress.
type product struct {
	a, b, c Matrix
	Shape
	count  int // tiles in a column of tiles
	height int // rows of the lower tiles; the first taller tiles have one more
	taller int
	wide   int // registers per row of most tiles
	packA  bool
	packB  bool
}

// multiply sets C = A·B, or adds A·B to C.
func (x *blocked) multiply(k *kernels, p product, add bool) {
	x.kernels, x.product = k, p
	if x.narrow(add) {
		x.product = product{}
		return
	}
	x.plan()
	for j := x.transposed(add); j < p.N; j += columnsPerBlock {
		columns := min(columnsPerBlock, p.N-j)
		for from := 0; from < p.K; from += Block {
			x.columns(j, columns, from, min(Block, p.K-from), add || from > 0)
		}
	}
	x.tiles, x.strip, x.product = tiles{}, strip{}, product{} // release the matrices
}

// plan chooses the tiles and what to pack.
func (x *blocked) plan() {
	k := x.kernels
	x.wide = 2
	switch {
	case x.N <= k.lanes:
		x.wide = 1
	case x.M <= k.rows(8) && x.N >= 8*k.lanes:
		x.wide = 8
	case x.N >= 4*k.lanes && (x.M <= k.rows(4) || k.wideShort && x.K <= shortInner && !x.b.Transposed):
		x.wide = 4
	}
	tallest := k.rows(x.wide)
	x.count = (x.M + tallest - 1) / tallest
	x.height, x.taller = x.M/x.count, x.M%x.count
	x.packB = x.b.Transposed || x.M > fewRows && x.K > shortInner
	columns := fewColumns
	if x.packB {
		columns = k.fewColumns
	}
	x.packA = k.adjacent || x.N > columns || x.a.Transposed && x.a.Stride >= farApart && x.N > shortInner
}

// row returns the first row of a tile.
func (x *blocked) row(tile int) int { return tile*x.height + min(tile, x.taller) }

// columns computes some columns of C over one block of the inner dimension.
func (x *blocked) columns(first, columns, from, block int, add bool) {
	perBlock := max(1, rowsPerBlock/(x.height+1))
	if x.packB {
		reserve(&x.right, (columns+x.kernels.lanes)*block)
	} else {
		reserve(&x.right, x.wide*x.kernels.lanes*block) // for the last panel
	}
	if x.packA {
		reserve(&x.left, (perBlock*(x.height+1)+x.kernels.lanes)*block)
	}
	x.tiles.k = block
	x.tiles.rowC = bytes(x.c.Stride)
	x.tiles.add, x.tiles.fetch = 0, 1
	if add {
		x.tiles.add = 1
	}
	if block <= nearInner && x.M*x.N <= nearSize {
		x.tiles.fetch = 0
	}
	for tile := 0; tile < x.count; tile += perBlock {
		end := min(tile+perBlock, x.count)
		if x.packA {
			for t := tile; t < end; t++ {
				x.packRows(x.left[(x.row(t)-x.row(tile))*block:], x.row(t), x.row(t+1)-x.row(t), from, block)
			}
		}
		for j := 0; j < columns; {
			vectors := x.vectors(columns - j)
			width := vectors * x.kernels.lanes
			packed := x.right
			if x.packB {
				packed = packed[j*block:]
			}
			x.panel(packed, first+j, min(width, columns-j), from, tile == 0 || !x.packB)
			x.column(tile, end, vectors, from, first+j)
			j += width
		}
	}
}

// vectors returns the number of registers per row of the next panel, with columns left.
func (x *blocked) vectors(columns int) int {
	v := x.wide
	for v > 2 && columns < v*x.kernels.lanes {
		v /= 2
	}
	if columns <= x.kernels.lanes {
		return 1
	}
	return v
}

// panel sets the kernel's B to a panel of columns, packed the first time it is needed.
func (x *blocked) panel(packed []float32, j, columns, from int, first bool) {
	lanes := x.kernels.lanes
	x.tiles.mask, x.tiles.lanes = masks((columns-1)%lanes + 1)
	whole := columns%lanes == 0
	if !x.packB && whole {
		x.tiles.b = &x.b.Data[from*x.b.Stride+j]
		x.tiles.stepB = bytes(x.b.Stride)
		return
	}
	if first {
		x.packColumns(packed, j, columns, from, x.tiles.k)
	}
	x.tiles.b = &packed[0]
	x.tiles.stepB = bytes((columns + lanes - 1) / lanes * lanes)
}

// column computes the tiles of one panel of columns: first the taller ones, then the others.
func (x *blocked) column(tile, end, vectors, from, j int) {
	begin := tile
	for tile < end {
		height, to := x.height, end
		if tile < x.taller {
			height, to = x.height+1, min(end, x.taller)
		}
		t := &x.tiles
		if x.packA {
			t.a = &x.left[(x.row(tile)-x.row(begin))*t.k]
			t.rowA, t.stepA, t.nextA = bytes(1), bytes(height), bytes(height*t.k)
		} else {
			row, column := x.a.strides()
			t.a = &x.a.Data[x.row(tile)*row+from*column]
			t.rowA, t.stepA, t.nextA = bytes(row), bytes(column), bytes(row*height)
		}
		t.c = &x.c.Data[x.row(tile)*x.c.Stride+j]
		t.count = to - tile
		x.kernels.tile(vectors, height, x.packA && x.packB)(t.words())
		tile = to
	}
}

// reserve makes *v at least n long, plus a register for kernels that write beyond the end.
func reserve(v *[]float32, n int) {
	const line = 16
	if n += line; len(*v) >= n {
		return
	}
	room := make([]float32, n+line)
	past := int(uintptr(unsafe.Pointer(unsafe.SliceData(room))) / 4 % line)
	*v = room[(line-past)%line:]
}

// bytes returns the size of n elements.
func bytes(n int) uintptr { return 4 * uintptr(n) }
