//go:build !noasm && !race

package cpu

// The fast functions of Maxout process the leading outputs and return their number: all whole
// blocks of 16, or 0 if the processor has no AVX-512.

func fastMaxout(y, x []float32, pieces int) int {
	n := outputsAtOnce(len(y))
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		maxoutWide(y[lo:hi], &x[lo*pieces : hi*pieces][0], pieces)
	}
	return n
}

func fastMaxoutGrad(dx, dy, x []float32, pieces int) int {
	n := outputsAtOnce(len(dy))
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		maxoutGradWide(&dx[lo*pieces : hi*pieces][0], dy[lo:hi], &x[lo*pieces : hi*pieces][0], pieces)
	}
	return n
}

// outputsAtOnce returns how many of n outputs kernels take.
func outputsAtOnce(n int) int {
	if !hasAVX512 {
		return 0
	}
	return n &^ (pair - 1)
}
