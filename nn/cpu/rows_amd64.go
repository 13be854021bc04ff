//go:build !noasm && !race

package cpu

// The fast functions on rows process the leading rows and return their number: all of them,
// or 0 if the processor has no AVX-512 or a row is not a multiple of 16 elements.

// rowsAtOnce returns how many rows of this width a kernel call takes, at least 1. It is 0 if
// there is no kernel for them.
func rowsAtOnce(width int) int {
	if !hasAVX512 || width < pair || width%pair != 0 {
		return 0
	}
	return max(1, stretch/width)
}

// fastWeights takes the first rows of s, which are pitch apart.
func fastWeights(s []float32, rows, pitch int, m maskedRows) int {
	most := rowsAtOnce(m.keys)
	if most == 0 {
		return 0
	}
	for lo := 0; lo < rows; lo += most {
		count := min(most, rows-lo)
		part := s[lo*pitch:][:(count-1)*pitch+m.keys]
		weightsWide(&part[0], count, pitch, m.keys, m.seen+lo*m.step, m.step, m.scale, normalConstants)
	}
	return rows
}

// fastScores takes the first rows of p and w, which are pitch apart.
func fastScores(p, w []float32, rows, pitch, keys int, scale float32) int {
	most := rowsAtOnce(keys)
	if most == 0 {
		return 0
	}
	for lo := 0; lo < rows; lo += most {
		count := min(most, rows-lo)
		size := (count-1)*pitch + keys
		weightsGradWide(&p[lo*pitch:][:size][0], &w[lo*pitch:][:size][0], count, pitch, keys, scale)
	}
	return rows
}

func fastNorm(y, moments, x, g, b []float32, eps float32) int {
	width := len(g)
	most, rows := rowsAtOnce(width), len(moments)/2
	if most == 0 {
		return 0
	}
	b = b[:width]
	for lo := 0; lo < rows; lo += most {
		count := min(most, rows-lo)
		from, to := lo*width, (lo+count)*width
		normWide(&y[from:to][0], &moments[2*lo:][:2*count][0], &x[from:to][0], &g[0], &b[0], count, width, float32(width), eps)
	}
	return rows
}

func fastNormGrad(dx, dy, x []float32, n normGrads) int {
	width := len(n.g)
	most, rows := rowsAtOnce(width), len(n.moments)/2
	if most == 0 {
		return 0
	}
	dg, db := n.dg[:width], n.db[:width]
	for lo := 0; lo < rows; lo += most {
		count := min(most, rows-lo)
		from, to := lo*width, (lo+count)*width
		normGradWide(&dx[from:to][0], &dg[0], &db[0], &dy[from:to][0], &x[from:to][0], &n.moments[2*lo:][:2*count][0], &n.g[0], count, width, float32(width))
	}
	return rows
}
