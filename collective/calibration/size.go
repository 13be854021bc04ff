package calibration

import (
	"math"
	"strconv"
	"strings"
)

// ParseSize reads a number of bytes: digits, and K, M or G in either case for KiB, MiB or
// GiB, as nccl-tests does. ok is false if the text is none or the number is too large.
func ParseSize(text string) (bytes int, ok bool) {
	digits, shift := text, 0
	if n := len(text); n > 0 {
		if i := strings.IndexByte("KMG", text[n-1]&^0x20); i >= 0 {
			digits, shift = text[:n-1], 10*(i+1)
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || n > math.MaxInt>>shift {
		return 0, false
	}
	return int(n << shift), true
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
