//go:build !noasm && !race

package cpu

import "math"

// normalConstants are the constants of exp and normal, one register each. tools/cpugen
// has the same list.
var normalConstants = func() *[28][lanes]float32 {
	list := []float32{expLeast, expMost, log2e, roundTo, ln2Hi, ln2Lo}
	list = append(list, expTerms[:]...)
	list = append(list, 1, math.Float32frombits(127), float32(math.Inf(1)), -.5, math.Float32frombits(math.MaxInt32), slope, inverseRoot2Pi)
	list = append(list, normalTerms[:]...)
	c := new([28][lanes]float32)
	for i, v := range list {
		for j := range c[i] {
			c[i][j] = v
		}
	}
	return c
}()

func fastExp(y []float32, top float32) int {
	return eachKernel(len(y), func(lo, hi int) { expWide(y[lo:hi], top, normalConstants) },
		func(lo, hi int) { expBlocks(y[lo:hi], top, normalConstants) })
}

func fastGelu(y, x []float32) int {
	return eachKernel(len(y), func(lo, hi int) { geluWide(y[lo:hi], x[lo:hi], normalConstants) },
		func(lo, hi int) { geluBlocks(y[lo:hi], x[lo:hi], normalConstants) })
}

func fastGeluGrad(dx, dy, x []float32) int {
	return eachKernel(len(dx), func(lo, hi int) { geluGradWide(dx[lo:hi], dy[lo:hi], x[lo:hi], normalConstants) },
		func(lo, hi int) { geluGradBlocks(dx[lo:hi], dy[lo:hi], x[lo:hi], normalConstants) })
}

// eachKernel calls wide with stretches of n elements in pairs of blocks, if the processor
// has AVX-512, and narrow with those of the other whole blocks. Both give the same bits.
func eachKernel(n int, wide, narrow func(lo, hi int)) int {
	n = whole(n, lanes)
	lo := 0
	if hasAVX512 {
		for end := n &^ (pair - 1); lo < end; lo = min(lo+stretch, end) {
			wide(lo, min(lo+stretch, end))
		}
	}
	for ; lo < n; lo = min(lo+stretch, n) {
		narrow(lo, min(lo+stretch, n))
	}
	return n
}
