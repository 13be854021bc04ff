//go:build !noasm && !race

package fold

// Instructions names the instruction set extension used on this machine. Go's arm64 always
// has NEON.
func Instructions() string { return "NEON" }

const (
	// Block sizes: kernels take multiples of 64 bytes, or of 16 elements if they convert.
	block32, block64, blockUint8, block16 = 16, 8, 64, 16
	// stretch is the number of elements per kernel call, some microseconds of work: the
	// runtime cannot preempt a goroutine inside assembly.
	stretch = 1 << 15
)

// eachBlock calls a kernel for whole blocks of n elements, a stretch at a time, and returns
// how many elements those are. The kernel returns how many it has done. If it stops early,
// loop does the next block.
func eachBlock(n, block int, kernel func(lo, n int) (done int), loop func(lo, hi int)) int {
	n &^= block - 1
	for lo := 0; lo < n; {
		hi := min(lo+stretch, n)
		if lo += kernel(lo, hi-lo); lo < hi {
			loop(lo, lo+block)
			lo += block
		}
	}
	return n
}

// The fast functions process the leading elements and return their number: all whole blocks.

func fast32(op Op, dst, a, b []float32) int {
	return eachBlock(len(dst), block32, func(lo, n int) int {
		dst, a, b := &dst[lo], &a[lo], &b[lo]
		switch op {
		case Min:
			return neonMin32(dst, a, b, n)
		case Max:
			return neonMax32(dst, a, b, n)
		case Prod:
			return neonProd32(dst, a, b, n)
		}
		return neonSum32(dst, a, b, n)
	}, func(lo, hi int) { foldFloats(op, dst[lo:hi], a[lo:hi], b[lo:hi], nan32) })
}

func fast64(op Op, dst, a, b []float64) int {
	return eachBlock(len(dst), block64, func(lo, n int) int {
		dst, a, b := &dst[lo], &a[lo], &b[lo]
		switch op {
		case Min:
			return neonMin64(dst, a, b, n)
		case Max:
			return neonMax64(dst, a, b, n)
		case Prod:
			return neonProd64(dst, a, b, n)
		}
		return neonSum64(dst, a, b, n)
	}, func(lo, hi int) { foldFloats(op, dst[lo:hi], a[lo:hi], b[lo:hi], nan64) })
}

func fastInt32(op Op, dst, a, b []int32) int {
	return eachBlock(len(dst), block32, func(lo, n int) int {
		dst, a, b := &dst[lo], &a[lo], &b[lo]
		switch op {
		case Min:
			return neonMinInt32(dst, a, b, n)
		case Max:
			return neonMaxInt32(dst, a, b, n)
		case Prod:
			return neonProdInt32(dst, a, b, n)
		}
		return neonSumInt32(dst, a, b, n)
	}, nil)
}

// NEON only adds int64.
func fastInt64(op Op, dst, a, b []int64) int {
	if op != Sum {
		return 0
	}
	return eachBlock(len(dst), block64, func(lo, n int) int { return neonSumInt64(&dst[lo], &a[lo], &b[lo], n) }, nil)
}

func fastUint8(op Op, dst, a, b []uint8) int {
	return eachBlock(len(dst), blockUint8, func(lo, n int) int {
		dst, a, b := &dst[lo], &a[lo], &b[lo]
		switch op {
		case Min:
			return neonMinUint8(dst, a, b, n)
		case Max:
			return neonMaxUint8(dst, a, b, n)
		case Prod:
			return neonProdUint8(dst, a, b, n)
		}
		return neonSumUint8(dst, a, b, n)
	}, nil)
}

func fastScale32(x []float32, by float32) int {
	return eachBlock(len(x), block32, func(lo, n int) int { return neonScale32(&x[lo], by, n) },
		func(lo, hi int) { scaleFloats(x[lo:hi], by, nan32) })
}

func fastScale64(x []float64, by float64) int {
	return eachBlock(len(x), block64, func(lo, n int) int { return neonScale64(&x[lo], by, n) },
		func(lo, hi int) { scaleFloats(x[lo:hi], by, nan64) })
}

func fastWiden(dst []float32, src []uint16, f Format) int {
	return eachBlock(len(dst), block16, func(lo, n int) int {
		if f == Half {
			neonWidenHalf(&dst[lo], &src[lo], n)
		} else {
			neonWidenBrain(&dst[lo], &src[lo], n)
		}
		return n
	}, nil)
}

func fastRound(dst []uint16, src []float32, f Format) int {
	return eachBlock(len(dst), block16, func(lo, n int) int {
		if f == Half {
			neonRoundHalf(&dst[lo], &src[lo], n)
		} else {
			neonRoundBrain(&dst[lo], &src[lo], n)
		}
		return n
	}, nil)
}

// SumAll calls fast32 for one piece after another. Means of integers have only the loops.

func fastSumAll([]float32, [][]float32, float32) int { return 0 }
func fastMeanInt32([]int32, [][]int32) int           { return 0 }
func fastMeanUint8([]uint8, [][]uint8) int           { return 0 }
