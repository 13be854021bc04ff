package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/checkpoint"
)

// colours writes a set in the format of CIFAR-10, whose classes are red, green and blue.
func colours(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"} {
		var b bytes.Buffer
		for i := range 12 {
			b.WriteByte(byte(i % 3))
			for plane := range 3 {
				shade := byte(20 + i)
				if plane == i%3 {
					shade = byte(200 + i)
				}
				b.Write(bytes.Repeat([]byte{shade}, 32*32))
			}
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".bin"), b.Bytes(), 0o600))
	}
	return dir
}

// A network for images with channels is trained, evaluated and used like any other.
func TestCIFAR(t *testing.T) {
	set, out := "cifar:"+colours(t), t.TempDir()
	args := []string{"train", "../../examples/resnet.cfg", "--data", set, "--model.*.images.channels", "3", "--stages.first", "2", "--stages.second", "2",
		"--stages.third", "3", "--batch", "6", "--workers", "2", "--steps", "40", "--evaluation.frequency", "0", "--transport", "inproc", "--json"}
	code, stdout, stderr := result(append(args, "--out", out)...)
	require.Zero(t, code, stderr)
	require.Greater(t, metric(t, stdout, "accuracy"), .6, "colours are easy to tell apart")

	f, err := checkpoint.Load(filepath.Join(out, "model.safetensors"))
	require.NoError(t, err)
	require.Equal(t, []string{"3", "32", "32"}, []string{f.Metadata["channels"], f.Metadata["height"], f.Metadata["width"]})
	code, again, stderr := result("eval", out, "--json")
	require.Zero(t, code, stderr)
	require.Equal(t, metric(t, stdout, "accuracy"), metric(t, again, "accuracy"))
	code, rows, stderr := result("predict", out, "--data", set)
	require.Zero(t, code, stderr)
	require.Equal(t, 12, strings.Count(rows, "\n"))

	for want, args := range map[string][]string{
		"is for images of 3x32x32, but those of digits have 28x28; use --data with the data it was trained on":                        {"eval", out, "--data", "digits"},
		"a.npy have 1 channel; give files like those it was trained on":                                                               {"predict", out, oneNPY(t)},
		"model.*.images: Images.v1: cannot read rows of shape [3072] as images of shape [1 55 55]; set channels, height and width to": {"train", "../../examples/resnet.cfg", "--data", set},
	} {
		code, _, stderr := result(args...)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, want)
	}
}

// oneNPY writes a NumPy array of one image of 32x32, and returns its path.
func oneNPY(t *testing.T) string {
	header := fmt.Sprintf("%-117s\n", "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 32, 32), }")
	text := append([]byte("\x93NUMPY\x01\x00"+string([]byte{byte(len(header)), 0})+header), make([]byte, 32*32)...)
	path := filepath.Join(t.TempDir(), "a.npy")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}
