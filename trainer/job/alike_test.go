package job

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/job/machine"
)

// Workers compare nothing that depends on the processor, so machines with different ones can train
// in one job. Every build has the product of the golden file.
func TestWorkersDoNotCompareProcessors(t *testing.T) {
	t.Setenv(cpu.EnvOpenBLAS, "off")
	golden, err := os.ReadFile(goldenFile)
	require.NoError(t, err)
	s := describe(t, tinySpec(t))
	rows, err := s.Problem.Open(t.Context())
	require.NoError(t, err)
	products := 0
	for _, x := range s.alike(rows, cpu.New(cpu.Options{}).BLAS(), "plan") {
		if strings.Contains(x.Name, "matrix products") {
			products++
			require.Equal(t, strings.SplitN(string(golden), "\n", 2)[0], x.Value)
		}
		here := machine.This()
		for _, processor := range []string{machine.Processor(), here.Instructions, runtime.GOARCH} {
			require.False(t, processor != "" && strings.Contains(x.Value, processor), "%s: %s", x.Name, x.Value)
		}
	}
	require.Equal(t, 1, products)
}
