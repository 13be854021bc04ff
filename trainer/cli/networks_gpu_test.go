//go:build gpu && cgo && linux

package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Networks built from configs have the losses of the CPU on GPUs, alone and with two
// workers.
func TestGPUNetworks(t *testing.T) {
	require.NotEmpty(t, smallDir())
	for _, c := range []struct{ name, workers, args string }{
		{"resnet", "2", "--stages.first 2 --stages.second 3 --stages.third 4"},
		{"transformer", "1", "--width.rows 14 --width.model 8 --width.hidden 12"},
		{"transformer", "2", "--width.rows 14 --width.model 8 --width.hidden 12"},
	} {
		t.Run(c.name+" "+c.workers, func(t *testing.T) {
			args := append([]string{"train", "../../examples/" + c.name + ".cfg", "--data", "mnist:" + smallDir(), "--json",
				"--batch", "4", "--steps", "3", "--evaluation.frequency", "0", "--workers", c.workers}, strings.Fields(c.args)...)
			want := train(t, append(args, "--device", "cpu")...)
			got, _ := trainOnGPUs(t, append(args, "--device", "cuda", "--share-gpu")...)
			sameLosses(t, want, got)
		})
	}
}
