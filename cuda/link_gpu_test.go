//go:build gpu && cgo && linux

package cuda

import (
	"debug/elf"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A program with this package, such as this test, starts without any CUDA library.
func TestProgramNeedsNoCUDA(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	file, err := elf.Open(self)
	require.NoError(t, err)
	defer file.Close()
	needed, err := file.ImportedLibraries()
	require.NoError(t, err)
	require.Contains(t, strings.Join(needed, " "), "libc.so", "a program with cgo needs libc")
	for _, library := range needed {
		for _, name := range []string{"cuda", "cublas", "cudnn", "nvrtc", "nccl"} {
			require.NotContains(t, library, name)
		}
	}
	symbols, err := file.DynamicSymbols()
	require.NoError(t, err)
	for _, s := range symbols {
		require.False(t, strings.HasPrefix(s.Name, "cu") && s.Section == elf.SHN_UNDEF, "%s is left to the loader", s.Name)
	}
}
