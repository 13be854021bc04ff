//go:build !noasm && !race

package fold

import "golang.org/x/sys/cpu"

// All processors with AVX2 so far have F16C too, but a virtual machine may hide it.
var (
	hasAVX2 = cpu.X86.HasAVX2
	hasF16C = cpu.X86.HasAVX2 && cpu.X86.HasF16C
)

// Instructions names the instruction set extensions used on this machine, such as "AVX2
// F16C". It is "" if only the plain loops run.
func Instructions() string {
	switch {
	case hasF16C:
		return "AVX2 F16C"
	case hasAVX2:
		return "AVX2"
	}
	return ""
}

const (
	// Block sizes: kernels take multiples of a register of float32, of float64, or of a
	// register of 16-bit elements.
	block32, block64, block16 = 8, 4, 16
	// stretch is the number of elements per kernel call, some microseconds of work: the
	// runtime cannot preempt a goroutine inside assembly.
	stretch = 1 << 15
)

// fast32 folds the leading elements and returns their number: all whole blocks, or 0
// where there are no kernels.
func fast32(op Op, dst, a, b []float32) int {
	n := whole(len(dst), block32, hasAVX2)
	if op == Sum && 0 < n && n <= stretch { // the loop would add 61 instructions to a small call
		sum32(dst[:n], a, b)
		return n
	}
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		dst, a, b := dst[lo:hi], a[lo:hi], b[lo:hi]
		switch op {
		case Sum:
			sum32(dst, a, b)
		case Min:
			min32(dst, a, b)
		case Max:
			max32(dst, a, b)
		case Prod:
			prod32(dst, a, b)
		}
	}
	return n
}

// fast64 is fast32 for float64.
func fast64(op Op, dst, a, b []float64) int {
	n := whole(len(dst), block64, hasAVX2)
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		dst, a, b := dst[lo:hi], a[lo:hi], b[lo:hi]
		switch op {
		case Sum:
			sum64(dst, a, b)
		case Min:
			min64(dst, a, b)
		case Max:
			max64(dst, a, b)
		case Prod:
			prod64(dst, a, b)
		}
	}
	return n
}

// fastScale32 scales the leading elements and returns their number.
func fastScale32(x []float32, by float32) int {
	n := whole(len(x), block32, hasAVX2)
	for lo := 0; lo < n; lo += stretch {
		scale32(x[lo:min(lo+stretch, n)], by)
	}
	return n
}

// fastScale64 is fastScale32 for float64.
func fastScale64(x []float64, by float64) int {
	n := whole(len(x), block64, hasAVX2)
	for lo := 0; lo < n; lo += stretch {
		scale64(x[lo:min(lo+stretch, n)], by)
	}
	return n
}

// fastWiden converts the leading elements and returns their number.
func fastWiden(dst []float32, src []uint16, f Format) int {
	n := whole(len(dst), block16, hasKernel(f))
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		switch f {
		case Half:
			widenHalf(dst[lo:hi], src[lo:hi])
		case Brain:
			widenBrain(dst[lo:hi], src[lo:hi])
		}
	}
	return n
}

// fastRound converts the leading elements and returns their number.
func fastRound(dst []uint16, src []float32, f Format) int {
	n := whole(len(dst), block16, hasKernel(f))
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		switch f {
		case Half:
			roundHalf(dst[lo:hi], src[lo:hi])
		case Brain:
			roundBrain(dst[lo:hi], src[lo:hi])
		}
	}
	return n
}

// hasKernel reports whether this processor can convert the format.
func hasKernel(f Format) bool {
	if f == Half {
		return hasF16C
	}
	return hasAVX2
}

// whole returns how many of n elements form whole blocks, or 0 if able is false.
func whole(n, block int, able bool) int {
	if !able {
		return 0
	}
	return n &^ (block - 1)
}
