//go:build linux && (amd64 || arm64) && !static

package kernels

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestResources logs the resources of each kernel, and checks that its blocks fit.
func TestResources(t *testing.T) {
	h := newHarness(t)
	// Of CUfunction_attribute: the most threads of a block, bytes of shared memory, bytes
	// of local memory of a thread, and registers.
	const mostThreads, shared, local, registers = 0, 1, 3, 4
	t.Logf("%-22s %9s %9s %7s %6s", "kernel", "registers", "shared", "local", "block")
	for _, k := range List {
		attribute := func(number int) int {
			v, err := h.d.Attribute(k.Name, number)
			require.NoError(t, err, k.Name)
			return v
		}
		_, block := k.Shape.Of(1, 1)
		t.Logf("%-22s %9d %9d %7d %6d", k.Name, attribute(registers), attribute(shared), attribute(local), block.X*block.Y*block.Z)
		require.LessOrEqual(t, int(block.X*block.Y*block.Z), attribute(mostThreads), k.Name)
	}
}
