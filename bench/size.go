package bench

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseSize reads a number of bytes: digits, and K, M or G in either case for
// KiB, MiB or GiB, as nccl-tests does.
func ParseSize(text string) (int, error) {
	digits, shift := text, 0
	if n := len(text); n > 0 {
		if i := strings.IndexByte("KMG", text[n-1]&^0x20); i >= 0 {
			digits, shift = text[:n-1], 10*(i+1)
		}
	}
	bytes, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || bytes > math.MaxInt64>>shift || bytes<<shift > math.MaxInt {
		return 0, fmt.Errorf("%q is not a size: write bytes, or a number with K, M or G", text)
	}
	return int(bytes << shift), nil
}

// FormatSize returns the shortest text that ParseSize reads as bytes.
func FormatSize(bytes int) string {
	units := ""
	for _, u := range []string{"K", "M", "G"} {
		if bytes == 0 || bytes%1024 != 0 {
			break
		}
		bytes, units = bytes/1024, u
	}
	return strconv.Itoa(bytes) + units
}

// Sweep returns begin, begin*factor and so on, up to end.
func Sweep(begin, end, factor int) ([]int, error) {
	switch {
	case begin < 1:
		return nil, fmt.Errorf("a sweep starts at 1 byte or more, not at %d", begin)
	case end < begin:
		return nil, fmt.Errorf("the smallest size, %s, is larger than the largest, %s", FormatSize(begin), FormatSize(end))
	case factor < 2 && begin != end:
		return nil, fmt.Errorf("a sweep grows by a factor of at least 2, not %d", factor)
	}
	sizes := []int{begin}
	for last := begin; factor >= 2 && last <= end/factor; {
		last *= factor
		sizes = append(sizes, last)
	}
	return sizes, nil
}
