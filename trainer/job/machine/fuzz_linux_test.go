package machine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Lists of the kernel count what they name, however they are divided.
func FuzzCountRanges(f *testing.F) {
	f.Add(uint16(4), uint16(2))
	f.Fuzz(func(t *testing.T, n, every uint16) {
		if n == 0 {
			return
		}
		var parts []string
		step := int(every) + 1
		for lo := 0; lo < int(n); lo += step {
			hi := min(lo+step, int(n)) - 1
			if lo == hi {
				parts = append(parts, fmt.Sprint(lo))
			} else {
				parts = append(parts, fmt.Sprintf("%d-%d", lo, hi))
			}
		}
		require.Equal(t, int(n), countRanges(strings.Join(parts, ",")))
	})
}

// Malformed lists are 0, not a part of them.
func TestCountRangesRefuses(t *testing.T) {
	for _, list := range []string{"0-", "-3", "0,,1", "0-1-2", "0 1", "1,x", "0x1"} {
		require.Zero(t, countRanges(list), list)
	}
}
