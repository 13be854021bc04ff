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

// The limits of a control group are at most those of its parents, at any depth, and a group
// that the kernel does not show has none.
func FuzzLimits(f *testing.F) {
	f.Add(uint8(3), uint8(1), "100000 50000", "4096")
	f.Add(uint8(0), uint8(0), "max 100000", "max")
	f.Fuzz(func(t *testing.T, depth, at uint8, cpu, memory string) {
		group := strings.Repeat("/g", int(depth%16))
		if group == "" {
			group = "/"
		}
		limited := controlGroups + strings.TrimSuffix(strings.Repeat("/g", int(at%16)), "/")
		cores, bytes := limits(group, func(name string) string {
			switch name {
			case limited + "/cpu.max":
				return cpu
			case limited + "/memory.max":
				return memory
			}
			return ""
		})
		if at%16 > depth%16 && (cores != 0 || bytes != 0) {
			t.Errorf("%s has the limits of its child %s", group, limited)
		}
	})
}
