package bench

import (
	"fmt"

	"github.com/ringtrain/ringtrain/collective/calibration"
)

// ParseSize reads a number of bytes: digits, and K, M or G in either case for
// KiB, MiB or GiB, as nccl-tests does.
func ParseSize(text string) (int, error) {
	bytes, ok := calibration.ParseSize(text)
	if !ok {
		return 0, fmt.Errorf("%q is not a size: write bytes, or a number with K, M or G", text)
	}
	return bytes, nil
}

// FormatSize returns the shortest text that ParseSize reads as bytes.
func FormatSize(bytes int) string { return calibration.FormatSize(bytes) }

// Sweep returns begin, begin*factor and so on, up to end. Its errors call them -b, -f and -e, as the
// commands do.
func Sweep(begin, end, factor int) ([]int, error) {
	switch {
	case begin < 1:
		return nil, fmt.Errorf("-b must be at least 1, not %d", begin)
	case end < begin:
		return nil, fmt.Errorf("-b must be at most -e, %s, not %s", FormatSize(end), FormatSize(begin))
	case factor < 2 && begin != end:
		return nil, fmt.Errorf("-f must be at least 2, not %d", factor)
	}
	sizes := []int{begin}
	for last := begin; factor >= 2 && last <= end/factor; {
		last *= factor
		sizes = append(sizes, last)
	}
	return sizes, nil
}
