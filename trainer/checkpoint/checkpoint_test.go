package checkpoint_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/trainer/checkpoint"
)

// dense returns a tensor of the given shape.
func dense(data any, shape ...int) *tensor.Dense {
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(data))
}

// sample returns a file with every element type, a scalar and special values.
func sample() checkpoint.File {
	return checkpoint.File{
		Tensors: []checkpoint.Named{
			{Name: "layers.0.W", Tensor: dense([]float32{1, -2, 3.5, 0, float32(math.Inf(1)), math.SmallestNonzeroFloat32}, 2, 3)},
			{Name: "mask", Tensor: dense([]uint8{0, 1, 255}, 3)},
			{Name: "m", Tensor: dense([]float64{math.Pi, math.Copysign(0, -1)}, 2, 1)},
			{Name: "rows", Tensor: dense([]int32{math.MinInt32, 7}, 2)},
			{Name: "step", Tensor: tensor.New(tensor.FromScalar(int64(math.MaxInt64)))},
			{Name: "naïve \"quoted\" <name>", Tensor: dense([]float32{9}, 1)},
		},
		Metadata: map[string]string{"config": "[training]\nseed = 0\n", "": "empty key"},
	}
}

func TestSaveLoadRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.safetensors")
	want := sample()
	require.NoError(t, checkpoint.Save(path, want))
	got, err := checkpoint.Load(path)
	require.NoError(t, err)
	require.Equal(t, want.Metadata, got.Metadata)
	require.Len(t, got.Tensors, len(want.Tensors))
	for i, n := range want.Tensors {
		require.Equal(t, n.Name, got.Tensors[i].Name)
		require.Equal(t, []int(n.Tensor.Shape()), []int(got.Tensors[i].Tensor.Shape()), n.Name)
		require.Equal(t, n.Tensor.Data(), got.Tensors[i].Tensor.Data(), n.Name)
	}
	w, ok := got.Tensor("mask")
	require.True(t, ok)
	require.Equal(t, []uint8{0, 1, 255}, w.Data())
	_, ok = got.Tensor("absent")
	require.False(t, ok)

	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Zero(t, raw[0]%8, "the header is padded")
	again := filepath.Join(t.TempDir(), "b.safetensors")
	require.NoError(t, checkpoint.Save(again, got))
	raw2, err := os.ReadFile(again)
	require.NoError(t, err)
	require.Equal(t, raw, raw2, "equal files must have equal bytes")
}

func TestAnyFloatsRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 200).Draw(t, "rows"), rapid.IntRange(1, 200).Draw(t, "cols")
		data := make([]float32, rows*cols)
		seed := rapid.Uint32().Draw(t, "bits")
		for i := range data {
			seed = seed*1664525 + 1013904223
			data[i] = math.Float32frombits(seed &^ (1 << 30)) // any finite value
		}
		path := filepath.Join(dir, "x")
		require.NoError(t, checkpoint.Save(path, checkpoint.File{Tensors: []checkpoint.Named{{Name: "x", Tensor: dense(data, rows, cols)}}}))
		got, err := checkpoint.Load(path)
		require.NoError(t, err)
		require.Nil(t, got.Metadata)
		require.Equal(t, data, got.Tensors[0].Tensor.Data())
	})
}

func TestEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	require.NoError(t, checkpoint.Save(path, checkpoint.File{}))
	got, err := checkpoint.Load(path)
	require.NoError(t, err)
	require.Equal(t, checkpoint.File{}, got)
}

// A tensor's values are stored by index, whatever its view or layout.
func TestViewsAreStoredRowMajor(t *testing.T) {
	base := func() *tensor.Dense { return dense([]float32{1, 2, 3, 4, 5, 6}, 2, 3) }
	slice := func(s ...tensor.Slice) *tensor.Dense {
		v, err := base().Slice(s...)
		require.NoError(t, err)
		return v.(*tensor.Dense)
	}
	transposed := base()
	require.NoError(t, transposed.T())
	for name, c := range map[string]struct {
		tensor *tensor.Dense
		shape  []int
		want   any
	}{
		"columns":      {slice(nil, tensor.S(1, 3)), []int{2, 2}, []float32{2, 3, 5, 6}},
		"one column":   {slice(nil, tensor.S(1)), []int{2}, []float32{2, 5}},
		"one row":      {slice(tensor.S(1)), []int{3}, []float32{4, 5, 6}},
		"one element":  {slice(tensor.S(1), tensor.S(1)), []int{}, float32(5)},
		"transposed":   {transposed, []int{3, 2}, []float32{1, 4, 2, 5, 3, 6}},
		"column-major": {tensor.New(tensor.AsFortran([]float32{1, 2, 3, 4, 5, 6}), tensor.WithShape(2, 3)), []int{2, 3}, []float32{1, 3, 5, 2, 4, 6}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a")
			require.NoError(t, checkpoint.Save(path, checkpoint.File{Tensors: []checkpoint.Named{{Name: "x", Tensor: c.tensor}}}))
			got, err := checkpoint.Load(path)
			require.NoError(t, err)
			require.Equal(t, c.shape, append([]int{}, got.Tensors[0].Tensor.Shape()...))
			require.Equal(t, c.want, got.Tensors[0].Tensor.Data())
		})
	}
}

func TestSaveErrorsKeepTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	one := func() *tensor.Dense { return dense([]float32{1}, 1) }
	for name, c := range map[string]struct {
		file checkpoint.File
		want string
	}{
		"same name":      {checkpoint.File{Tensors: []checkpoint.Named{{"x", one()}, {"x", one()}}}, `two tensors are named "x"`},
		"no name":        {checkpoint.File{Tensors: []checkpoint.Named{{"", one()}}}, `cannot be named ""`},
		"reserved name":  {checkpoint.File{Tensors: []checkpoint.Named{{"__metadata__", one()}}}, `cannot be named "__metadata__"`},
		"name not UTF-8": {checkpoint.File{Tensors: []checkpoint.Named{{"\xff", one()}}}, "is not UTF-8"},
		"nil":            {checkpoint.File{Tensors: []checkpoint.Named{{"x", nil}}}, `tensor "x": there is no tensor`},
		"zero value":     {checkpoint.File{Tensors: []checkpoint.Named{{"x", new(tensor.Dense)}}}, `tensor "x": there is no tensor`},
		"other type":     {checkpoint.File{Tensors: []checkpoint.Named{{"x", dense([]bool{true}, 1)}}}, "elements of type bool cannot be stored"},
		"bad note":       {checkpoint.File{Metadata: map[string]string{"k": "\xff"}}, `metadata "k" is not UTF-8`},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkpoint.Save(path, c.file)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, path)
		})
	}
	require.ErrorContains(t, checkpoint.Save(filepath.Join(dir, "no", "a"), sample()), "no such file or directory")
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "old", string(raw))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary files are left")
}

// The Python package safetensors 0.8.0 wrote the file.
func TestGoldenFileFromPython(t *testing.T) {
	f, err := checkpoint.Load("testdata/python.safetensors")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"format": "np", "note": "résumé"}, f.Metadata)
	for name, want := range map[string]struct {
		shape []int
		data  any
	}{
		"layers.0.W": {[]int{2, 3}, []float32{-.5, -.25, 0, .25, .5, .75}},
		"layers.0.b": {[]int{2}, []float32{1.5, -2.25}},
		"moments.v":  {[]int{2, 1}, []float64{1e-300, math.Pi}},
		"step":       {[]int{}, int64(7)},
		"rows":       {[]int{3}, []int32{1, -2, 3}},
		"mask":       {[]int{2, 2}, []uint8{0, 1, 255, 7}},
	} {
		got, ok := f.Tensor(name)
		require.True(t, ok, name)
		require.Equal(t, want.shape, append([]int{}, got.Shape()...), name)
		require.Equal(t, want.data, got.Data(), name)
	}
	require.Len(t, f.Tensors, 6)
}

func TestHash(t *testing.T) {
	a := checkpoint.Named{Name: "layers.0.W", Tensor: dense([]float32{1, 2}, 2)}
	b := checkpoint.Named{Name: "layers.0.b", Tensor: dense([]float32{3}, 1)}
	// echo -n 0000803f0000004000004040 | xxd -r -p | sha256sum
	const want = "8e628779e6a74ee0b36991c10158f63cafec7d340ad4e075592502c8708524dd"
	got, err := checkpoint.Hash([]checkpoint.Named{a, b})
	require.NoError(t, err)
	require.Equal(t, want, got)
	got, err = checkpoint.Hash([]checkpoint.Named{b, a})
	require.NoError(t, err)
	require.Equal(t, want, got, "tensors are hashed in the order of their names")
	b.Name = "a"
	got, err = checkpoint.Hash([]checkpoint.Named{a, b})
	require.NoError(t, err)
	require.NotEqual(t, want, got)

	_, err = checkpoint.Hash([]checkpoint.Named{a, a})
	require.ErrorContains(t, err, `two tensors are named "layers.0.W"`)
	_, err = checkpoint.Hash([]checkpoint.Named{{Name: "n"}})
	require.ErrorContains(t, err, `tensor "n"`)
	none, err := checkpoint.Hash(nil)
	require.NoError(t, err)
	require.Equal(t, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", none)
}
