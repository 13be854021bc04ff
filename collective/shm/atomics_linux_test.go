package shm

import (
	"go/build/constraint"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Processes share memory only where Go's 64-bit atomic operations are instructions
// of the processor. Exactly one of the two files covers each architecture.
func TestArchitectures(t *testing.T) {
	can := func(file string, tags []string) bool {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		first, _, _ := strings.Cut(string(text), "\n")
		expr, err := constraint.Parse(first)
		require.NoError(t, err)
		return expr.Eval(func(tag string) bool { return slices.Contains(tags, tag) })
	}
	for tags, want := range map[string]bool{
		"amd64": true, "arm64": true, "386": true, "riscv64": true, "mips64": true, "mips64le": true, "ppc64le": true, "s390x": true, "loong64": true,
		"mips": false, "mipsle": false, "arm arm.5": false, "arm arm.5 arm.6": false, "arm arm.5 arm.6 arm.7": true,
	} {
		t.Run(tags, func(t *testing.T) {
			require.Equal(t, want, can("atomics_linux.go", strings.Fields(tags)))
			require.Equal(t, !want, can("atomics_locked_linux.go", strings.Fields(tags)))
		})
	}
	require.NoError(t, whyNot())
}
