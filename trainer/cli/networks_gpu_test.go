//go:build gpu && cgo && linux

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Networks built from configs have the losses of the CPU on GPUs, alone and with two
// workers.
func TestGPUNetworks(t *testing.T) {
	require.NotEmpty(t, smallDir())
	images, text := "mnist:"+smallDir(), filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("Even a short text has many characters. ", 20)), 0o600))
	for _, c := range []struct{ name, workers, data, args string }{
		{"resnet", "2", images, "--stages.first 2 --stages.second 3 --stages.third 4"},
		{"transformer", "1", images, "--width.rows 14 --width.model 8 --width.hidden 12"},
		{"transformer", "2", images, "--width.rows 14 --width.model 8 --width.hidden 12"},
		{"chars", "2", "text:" + text, "--model.*.characters.nO 8 --task.context 8"},
	} {
		t.Run(c.name+" "+c.workers, func(t *testing.T) {
			args := append([]string{"train", "../../examples/" + c.name + ".cfg", "--data", c.data, "--json",
				"--batch", "4", "--steps", "3", "--evaluation.frequency", "0", "--workers", c.workers}, strings.Fields(c.args)...)
			want := train(t, append(args, "--device", "cpu")...)
			got, _ := trainOnGPUs(t, append(args, "--device", "cuda", "--share-gpu")...)
			sameLosses(t, want, got)
			require.Contains(t, got[len(got)-1].BLAS, "cuBLASLt")
		})
	}
}
