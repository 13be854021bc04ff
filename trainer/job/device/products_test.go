package device

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda"
)

func TestProductFlags(t *testing.T) {
	require.NoError(t, (&Products{BF16: true, Timed: "d"}).Check())
	require.ErrorContains(t, (&Products{TF32: true, BF16: true, Timed: "d"}).Check(), "cannot be combined")
}

// Flags for GPUs are refused on the CPU, and bfloat16 on GPUs that do not support it.
func TestProductsWhere(t *testing.T) {
	recent, old := cuda.Info{Index: 0, Name: "H200", Major: 9}, cuda.Info{Index: 1, Name: "V100", Major: 7}
	for _, c := range []struct {
		Products
		Placement
		err string
	}{
		{Products{TF32: true}, Placement{}, "--tf32 needs GPUs, and the workers compute on the CPU"},
		{Products{BF16: true}, Placement{}, "--bf16 needs GPUs, and the workers compute on the CPU"},
		{Products{BF16: true}, Placement{why: "there is none"}, "compute on the CPU (there is none)"},
		{Products{Timed: "d"}, Placement{}, "--time-products needs GPUs"},
		{Products{BF16: true}, Placement{gpus: []int{0}, info: []cuda.Info{recent}}, ""},
		{Products{BF16: true}, Placement{gpus: []int{0, 1}, info: []cuda.Info{recent, old}}, "--bf16: GPU 1 (V100): products in bfloat16 need compute capability 8.0"},
		{Products{TF32: true}, Placement{gpus: []int{1}, info: []cuda.Info{old}}, ""},
	} {

		if err := c.CheckPlace(c.Placement); c.err == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, c.err)
		}
	}
}

// Choices are valid only for the GPU and the libraries they were measured with.
func TestReadTimed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "products-0.json")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	now := timedProducts{GPU: "H200", BLAS: "cuBLASLt 13.0"}
	_, err := readTimed(path, now)
	require.ErrorIs(t, err, os.ErrNotExist)
	write(`{"gpu": "H200", "blas": "cuBLASLt 13.0", "choices": {"a": 2}}`)
	choices, err := readTimed(path, now)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"a": 2}, choices)
	write(`{"gpu": "H100", "blas": "cuBLASLt 13.0", "choices": {"a": 2}}`)
	_, err = readTimed(path, now)
	require.ErrorContains(t, err, "was measured on H100 with cuBLASLt 13.0 without cuDNN, and this machine has H200 with cuBLASLt 13.0 without cuDNN: remove it")
	now.DNN = "cuDNN 9.1.0"
	write(`{"gpu": "H200", "blas": "cuBLASLt 13.0", "dnn": "cuDNN 9.1.0", "choices": {"a": 2}}`)
	_, err = readTimed(path, now)
	require.NoError(t, err)
	for _, was := range []string{`"dnn": "cuDNN 8.9.7", `, ""} {
		write(`{"gpu": "H200", "blas": "cuBLASLt 13.0", ` + was + `"choices": {"a": 2}}`)
		_, err = readTimed(path, now)
		require.ErrorContains(t, err, "and this machine has H200 with cuBLASLt 13.0 and cuDNN 9.1.0: remove it")
	}
	write(`{`)
	_, err = readTimed(path, now)
	require.ErrorContains(t, err, "is not a file of --time-products")
}
