//go:build gpu && cgo && linux

package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A language model has nearly the losses of the CPU on GPUs, in graphs and without them.
// The text is then in the memory of the GPU.
func TestGPUChars(t *testing.T) {
	args := charsConfig(t, markovText(1200), "--steps", "6", "--evaluation.frequency", "3", "--transport", "auto")
	host := train(t, append(args, "--device", "cpu")...)
	require.Len(t, only(host, "step"), 6)
	for _, graphs := range []string{"whole", "off"} {
		got, _ := trainOnGPUs(t, append(args, "--device", "cuda", "--graphs", graphs)...)
		sameLosses(t, host, got)
		for i, e := range only(host, "eval") {
			require.InDelta(t, e.Loss, only(got, "eval")[i].Loss, 1e-5)
		}
	}
}
