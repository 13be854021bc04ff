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
	n := whole(len(y), lanes)
	for lo := 0; lo < n; lo += stretch {
		expBlocks(y[lo:min(lo+stretch, n)], top, normalConstants)
	}
	return n
}

func fastGelu(y, x []float32) int {
	n := whole(len(y), lanes)
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		geluBlocks(y[lo:hi], x[lo:hi], normalConstants)
	}
	return n
}

func fastGeluGrad(dx, dy, x []float32) int {
	n := whole(len(dx), lanes)
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		geluGradBlocks(dx[lo:hi], dy[lo:hi], x[lo:hi], normalConstants)
	}
	return n
}
