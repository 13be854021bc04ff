package job

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
)

func TestFits(t *testing.T) {
	w, b := []int{3, 2}, []int{3}
	params := []*nn.Param{{Name: "W", Shape: w}, {Name: "b", Shape: b}}
	entry := func(name string, shape ...int) checkpoint.Entry {
		return checkpoint.Entry{Name: name, Type: "F32", Shape: shape}
	}
	whole := func(prefix string) []checkpoint.Entry {
		return []checkpoint.Entry{entry(prefix+"W", w...), entry(prefix+"b", b...)}
	}
	join := func(parts ...[]checkpoint.Entry) (all []checkpoint.Entry) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	summed := map[string]string{"sha256": "0"}
	double := whole("")
	double[1].Type = "F64"
	for name, c := range map[string]struct {
		tensors []checkpoint.Entry
		notes   map[string]string
		want    string
	}{
		"weights":             {whole(""), nil, ""},
		"a checkpoint":        {join(whole(""), whole("optimizer/m/"), whole("residual/0/"), whole("residual/1/")), summed, ""},
		"none":                {whole("")[:1], nil, "it has no b"},
		"one more":            {join(whole(""), whole("x.")), nil, `the model, which has no "x.W"`},
		"a slot, weights":     {join(whole(""), whole("optimizer/m/")), nil, `which has no "optimizer/m/W"`},
		"transposed":          {[]checkpoint.Entry{entry("W", 2, 3), entry("b", 3)}, nil, "its W has shape [2 3], the model's [3 2]"},
		"another type":        {double, nil, "its b is of type F64, not F32"},
		"no slot":             {whole(""), summed, "it has the slots none, the optimizer keeps m"},
		"a slot too many":     {join(whole(""), whole("optimizer/m/"), whole("optimizer/v/")), summed, "it has the slots m, v, the optimizer keeps m"},
		"half a slot":         {join(whole(""), whole("optimizer/m/")[:1]), summed, "slot m, it has no b"},
		"half a residual":     {join(whole(""), whole("optimizer/m/"), whole("residual/0/")[1:]), summed, "residual of rank 0, it has no W"},
		"a residual too many": {join(whole(""), whole("optimizer/m/"), whole("residual/1/")), summed, "is out of order"},
	} {
		err := fits(checkpoint.Header{Tensors: c.tensors, Metadata: c.notes}, params, []string{"m"})
		if c.want == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.want, name)
		}
	}
}

// A file that fits its model may still be too large for the memory.
func TestFitsNoMemory(t *testing.T) {
	shape := []int{1 << 44, 196}
	err := fits(checkpoint.Header{Tensors: []checkpoint.Entry{{Name: "W", Type: "F32", Shape: shape}}}, []*nn.Param{{Name: "W", Shape: shape}}, nil)
	require.ErrorContains(t, err, "GB of memory of this machine")
}

// The header of a sparse file of 80 TB is valid. The size is checked before it is read.
func TestImagesBeyondMemory(t *testing.T) {
	digits, err := catalog.New().Data("digits", catalog.Options{})
	require.NoError(t, err)
	require.NoError(t, Holdable(digits.Info()))
	require.ErrorContains(t, Holdable(catalog.Info{Name: "mnist:DIR", Bytes: 1e16}), "the rows of mnist:DIR take 1e+07 GB")
	dir := t.TempDir()
	path := filepath.Join(dir, "t10k-images-idx3-ubyte")
	require.NoError(t, os.WriteFile(path, []byte{0, 0, 8, 3, 0x80, 0, 0, 0, 0, 0, 0, 40, 0, 0, 3, 0xe8}, 0o600))
	if err := os.Truncate(path, 16+40_000<<31); err != nil {
		t.Skipf("no file with holes: %v", err)
	}
	images, err := catalog.New().Test("mnist:"+dir, false)
	require.NoError(t, err)
	require.ErrorContains(t, Holdable(images.Info()), "GB of memory of this machine")
}
