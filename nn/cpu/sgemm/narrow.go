package sgemm

const (
	// transposing A for a narrow kernel takes about as long as multiplying three columns.
	transposing = 3
	// narrowInner is the smallest inner dimension for which narrow kernels are faster.
	narrowInner = 16
)

// narrow computes a product with a transposed B, if narrow kernels are faster than tiles. With
// few columns, tiles would leave much of a register empty. With few rows, packing B would take
// long. narrow reports whether it computed the product.
func (x *blocked) narrow(add bool) bool {
	lanes, most := x.kernels.lanes, len(x.kernels.narrow[1])-1
	if !x.b.Transposed || x.a.Transposed || x.M < lanes || x.K < narrowInner || most < 1 {
		return false
	}
	registers, parts := (x.N+lanes-1)/lanes, (x.N+most-1)/most
	thin := x.N+transposing*parts <= registers*lanes
	few := x.M%lanes == 0 && x.M <= x.kernels.narrowRows
	far := farRows
	if !thin {
		far /= 2
	}
	if !thin && !few || x.a.Stride%far == 0 { // then rows of A displace each other, see displaced
		return false
	}
	d := &x.dots
	d.rowA, d.rowB, d.rowC = bytes(x.b.Stride), bytes(x.a.Stride), bytes(x.c.Stride)
	i := 0
	for n := len(x.kernels.narrow) - 1; n > 0; n-- {
		if (x.N+parts-1)/parts < len(x.kernels.narrow[n]) {
			for ; x.M-i >= n*lanes; i += n * lanes {
				x.narrowTile(n, i, x.c.Data[i*x.c.Stride:], parts, add)
			}
		}
	}
	if i < x.M {
		x.narrowEnd(i, parts, add)
	}
	*d = dots{} // release the matrices
	return true
}

// narrowEnd computes the rows of C from first on, too few for a tile. Its tile begins before
// them and lies in memory of its own, because C already has the rows before the first.
func (x *blocked) narrowEnd(first, parts int, add bool) {
	lanes := x.kernels.lanes
	reserve(&x.edge, lanes*x.N)
	tile := x.edge[(first-x.M+lanes)*x.N:]
	x.dots.rowC = bytes(x.N)
	if add {
		for i := range x.M - first {
			copy(tile[i*x.N:][:x.N], x.c.Data[(first+i)*x.c.Stride:])
		}
	}
	x.narrowTile(1, x.M-lanes, x.edge, parts, add)
	for i := range x.M - first {
		copy(x.c.Data[(first+i)*x.c.Stride:], tile[i*x.N:][:x.N])
	}
}

// narrowTile computes as many rows of C as n registers have elements, from row i on, in parts of
// about the same number of columns.
func (x *blocked) narrowTile(n, i int, c []float32, parts int, add bool) {
	d := &x.dots
	for from := 0; from < x.K; from += Block {
		d.b = &x.a.Data[i*x.a.Stride+from]
		x.steps(x.a, i, i+n*x.kernels.lanes, from, add)
		for p := range parts {
			first, end := p*x.N/parts, (p+1)*x.N/parts
			d.a, d.c = &x.b.Data[first*x.b.Stride+from], &c[first]
			x.kernels.narrow[n][end-first](d.words())
		}
	}
}
