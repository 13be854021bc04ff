//go:build !noasm && !race

package fold

// Block sizes of the integer kernels: the elements in a register.
const (
	blockInt32, blockInt64, blockUint8 = 8, 4, 32
)

// fastInt32 folds the leading elements and returns their number, like fast32.
func fastInt32(op Op, dst, a, b []int32) int {
	n := whole(len(dst), blockInt32, hasAVX2)
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		dst, a, b := dst[lo:hi], a[lo:hi], b[lo:hi]
		switch op {
		case Sum:
			sumInt32(dst, a, b)
		case Min:
			minInt32(dst, a, b)
		case Max:
			maxInt32(dst, a, b)
		case Prod:
			prodInt32(dst, a, b)
		}
	}
	return n
}

// fastInt64 is fastInt32 for int64.
func fastInt64(op Op, dst, a, b []int64) int {
	n := whole(len(dst), blockInt64, hasAVX2)
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		dst, a, b := dst[lo:hi], a[lo:hi], b[lo:hi]
		switch op {
		case Sum:
			sumInt64(dst, a, b)
		case Min:
			minInt64(dst, a, b)
		case Max:
			maxInt64(dst, a, b)
		case Prod:
			prodInt64(dst, a, b)
		}
	}
	return n
}

// fastUint8 is fastInt32 for uint8.
func fastUint8(op Op, dst, a, b []uint8) int {
	n := whole(len(dst), blockUint8, hasAVX2)
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		dst, a, b := dst[lo:hi], a[lo:hi], b[lo:hi]
		switch op {
		case Sum:
			sumUint8(dst, a, b)
		case Min:
			minUint8(dst, a, b)
		case Max:
			maxUint8(dst, a, b)
		case Prod:
			prodUint8(dst, a, b)
		}
	}
	return n
}
