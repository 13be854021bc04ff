package sgemm

// strip4 is the number of columns that the plain product computes together. Their chains
// are independent, so the processor overlaps them.
const strip4 = 4

// plain is Multiply in Go. It is the specification of the kernels, and runs where there are
// none.
func (x *Multiplier) plain(c, a, b Matrix, s Shape, add bool) {
	if x.wide == nil {
		x.wide = make([]float64, strip4*Block)
	}
	rowA, columnA := a.strides()
	rowB, columnB := b.strides()
	for from := 0; from < s.K; from += Block {
		block := min(Block, s.K-from)
		for j := 0; j < s.N; j += strip4 {
			columns := min(strip4, s.N-j)
			right := x.wide[:strip4*block]
			for k := range block {
				for v := range columns {
					right[strip4*k+v] = float64(b.Data[(from+k)*rowB+(j+v)*columnB])
				}
			}
			for i := range s.M {
				sums := chains(right, a.Data[i*rowA+from*columnA:], columnA)
				to := c.Data[i*c.Stride+j:][:columns]
				for v := range to {
					if add {
						to[v] += sums[v]
					} else {
						to[v] = sums[v]
					}
				}
			}
		}
		add = true
	}
}

// chains returns the sums of four columns over a block. The elements of the left operand are
// step apart. The four copies of fma are written out because the compiler does not inline it.
func chains(right []float64, left []float32, step int) [strip4]float32 {
	var s0, s1, s2, s3 float32
	for at := 0; len(right) >= strip4; at, right = at+step, right[strip4:] {
		l := float64(left[at])
		r := (*[strip4]float64)(right)
		z0, z1, z2, z3 := float64(s0), float64(s1), float64(s2), float64(s3)
		// Conversions keep the compiler from fusing, although products are exact anyway.
		p0, p1, p2, p3 := float64(l*r[0]), float64(l*r[1]), float64(l*r[2]), float64(l*r[3])
		t0, t1, t2, t3 := p0+z0, p1+z1, p2+z2, p3+z3
		if doubtful(t0) {
			t0 = toOdd(t0, p0, z0)
		}
		if doubtful(t1) {
			t1 = toOdd(t1, p1, z1)
		}
		if doubtful(t2) {
			t2 = toOdd(t2, p2, z2)
		}
		if doubtful(t3) {
			t3 = toOdd(t3, p3, z3)
		}
		s0, s1, s2, s3 = float32(t0), float32(t1), float32(t2), float32(t3)
	}
	return [strip4]float32{s0, s1, s2, s3}
}
