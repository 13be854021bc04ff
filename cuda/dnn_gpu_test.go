//go:build gpu && cgo && linux

package cuda

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// emulatesDNN returns the file of the emulator's cuDNN, or skips the test.
func emulatesDNN(t *testing.T) string {
	t.Helper()
	need(t, Available())
	file := os.Getenv(CuDNN.Variable)
	if !strings.Contains(file, "emulator-") {
		t.Skip("needs the emulator's cuDNN")
	}
	return file
}

// convolve2D computes all three passes by definition: y with the bias, the addend of w, and
// x.
func convolve2D(c Convolution, x, w, y, bias []float32) (forward, weights, input []float64) {
	forward, weights, input = make([]float64, len(y)), make([]float64, len(w)), make([]float64, len(x))
	h, v := c.outHeight(), c.outWidth()
	for out := range y {
		j, i, k, n := out%v, out/v%h, out/v/h%c.Filters, out/v/h/c.Filters
		forward[out] = float64(bias[k])
		for tap := range c.Channels * c.Size * c.Size {
			row, column := i*c.Stride-c.Padding+tap/c.Size%c.Size, j*c.Stride-c.Padding+tap%c.Size
			if row < 0 || row >= c.Height || column < 0 || column >= c.Width {
				continue
			}
			in := ((n*c.Channels+tap/c.Size/c.Size)*c.Height+row)*c.Width + column
			at := k*c.Channels*c.Size*c.Size + tap
			forward[out] += float64(x[in]) * float64(w[at])
			weights[at] += float64(x[in]) * float64(y[out])
			input[in] += float64(w[at]) * float64(y[out])
		}
	}
	return forward, weights, input
}

// trialConvolution is a convolution with random operands.
type trialConvolution struct {
	Convolution
	x, w, y, bias []float32
}

func newTrial(c Convolution) trialConvolution {
	random := rand.New(rand.NewPCG(1, 2))
	numbers := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = random.Float32()*2 - 1
		}
		return v
	}
	return trialConvolution{
		c, numbers(c.Rows * c.Channels * c.Height * c.Width), numbers(c.Filters * c.Channels * c.Size * c.Size),
		numbers(c.Rows * c.Filters * c.outHeight() * c.outWidth()), numbers(c.Filters),
	}
}

// run captures and launches one algorithm, and returns its result.
func (c trialConvolution) run(t *testing.T, d *Device, s Stream, n *DNN, algorithm int) []float32 {
	t.Helper()
	plan, err := n.Plan(c.Convolution)
	require.NoError(t, err)
	defer plan.Destroy()
	o := ConvOperands{X: put(t, d, s, c.x), W: put(t, d, s, c.w), Y: put(t, d, s, c.y)}
	to, values := o.Y, c.y
	switch c.Pass {
	case ConvForward:
		o.Bias = put(t, d, s, c.bias)
	case ConvWeights:
		to, values = o.W, c.w
	case ConvInput:
		to, values = o.X, c.x
	}
	require.NoError(t, plan.Run(s, algorithm, o))
	require.NoError(t, s.Write(to, BytesOf(values)))
	g, err := s.Capture(func() error { return plan.Run(s, algorithm, o) })
	require.NoError(t, err)
	require.NoError(t, g.Launch(s))
	got := fetch(t, s, to, len(values))
	require.NoError(t, g.Destroy())
	return got
}

var convolutionShapes = []Convolution{
	{Rows: 2, Channels: 3, Height: 9, Width: 8, Filters: 4, Size: 3, Stride: 1, Padding: 1},
	{Rows: 3, Channels: 2, Height: 9, Width: 7, Filters: 5, Size: 3, Stride: 2, Padding: 2},
	{Rows: 2, Channels: 4, Height: 6, Width: 6, Filters: 2, Size: 1, Stride: 1},
	{Rows: 1, Channels: 1, Height: 11, Width: 12, Filters: 3, Size: 5, Stride: 3},
}

// Every algorithm that Algorithms returns is correct in a graph and gives the same bits each
// time. With TF32 factors may be rounded.
func TestConvolutions(t *testing.T) {
	onDevice(t, func(d *Device, s Stream) {
		_, err := DNNVersion()
		need(t, err)
		for _, tf32 := range []bool{false, true} {
			n, err := d.NewDNN(DNNOptions{TF32: tf32, Workspace: 8 << 20})
			require.NoError(t, err)
			worst := 0.
			for _, shape := range convolutionShapes {
				for _, pass := range []ConvPass{ConvForward, ConvWeights, ConvInput} {
					shape.Pass = pass
					c := newTrial(shape)
					forward, weights, input := convolve2D(shape, c.x, c.w, c.y, c.bias)
					for i, w := range c.w {
						weights[i] += float64(w)
					}
					want := [][]float64{forward, weights, input}[pass]
					plan, err := n.Plan(shape)
					require.NoError(t, err)
					algorithms := plan.Algorithms()
					plan.Destroy()
					if len(algorithms) == 0 { // NVIDIA's cuDNN may have no deterministic algorithm
						require.NotContains(t, os.Getenv(CuDNN.Variable), "emulator-", shape.Kind(tf32))
						t.Logf("%s: there is no algorithm", shape.Kind(tf32))
					}
					for _, algorithm := range algorithms {
						got := c.run(t, d, s, n, algorithm)
						require.Equal(t, got, c.run(t, d, s, n, algorithm), "%s by %d", shape.Kind(tf32), algorithm)
						for i := range want {
							off := math.Abs(want[i] - float64(got[i]))
							worst = max(worst, off)
							require.LessOrEqual(t, off, map[bool]float64{false: 2e-5, true: 5e-2}[tf32], "%s by %d: element %d", shape.Kind(tf32), algorithm, i)
						}
					}
				}
			}
			t.Logf("TF32 %v: off by %.2g at most", tf32, worst)
			require.NoError(t, n.Destroy())
		}
	})
}

// Algorithms leaves out algorithms that are not deterministic, that transform images, or that
// need too much workspace. With TF32 it includes Winograd's.
func TestConvolutionAlgorithms(t *testing.T) {
	emulatesDNN(t)
	onDevice(t, func(d *Device, s Stream) {
		offered := func(pass ConvPass, o DNNOptions) []int {
			n, err := d.NewDNN(o)
			require.NoError(t, err)
			c := convolutionShapes[0]
			c.Pass = pass
			plan, err := n.Plan(c)
			require.NoError(t, err)
			algorithms := plan.Algorithms()
			plan.Destroy()
			require.NoError(t, n.Destroy())
			return algorithms
		}
		for _, c := range []struct {
			pass  ConvPass
			tf32  bool
			bytes int
			want  []int
		}{
			{ConvForward, false, 0, []int{1, 0}},
			{ConvForward, false, 1 << 10, []int{0}},
			{ConvForward, true, 0, []int{6, 1, 0}},
			{ConvWeights, false, 0, []int{1}},
			{ConvWeights, true, 0, []int{4, 1}},
			{ConvInput, false, 0, []int{1}},
			{ConvInput, true, 0, []int{4, 1}},
			{ConvInput, true, 1 << 10, []int{}},
		} {
			require.Equal(t, c.want, offered(c.pass, DNNOptions{TF32: c.tf32, Workspace: c.bytes}), "%+v", c)
		}
	})
}

func TestConvolutionsThatAreRefused(t *testing.T) {
	emulatesDNN(t)
	onDevice(t, func(d *Device, s Stream) {
		n, err := d.NewDNN(DNNOptions{})
		require.NoError(t, err)
		defer func() { require.NoError(t, n.Destroy()) }()
		c := newTrial(convolutionShapes[0])
		plan, err := n.Plan(c.Convolution)
		require.NoError(t, err)
		defer plan.Destroy()
		at := ConvOperands{X: put(t, d, s, c.x), W: put(t, d, s, c.w), Y: put(t, d, s, c.y)}
		_, err = s.Capture(func() error { return plan.Run(s, 1, at) })
		require.ErrorContains(t, err, "conv2d forward 2x3x9x8 by 4x3x3 stride 1 padding 1 f32 by algorithm 1 of cuDNN: cudnnConvolutionForward: CUDNN_STATUS_EXECUTION_FAILED",
			"the first call loads kernels, which a capture forbids")
		require.NoError(t, plan.Run(s, 1, at))
		require.ErrorContains(t, plan.Run(s, 7, at), "CUDNN_STATUS_BAD_PARAM")
		odd := at
		odd.X += 4
		require.True(t, at.Aligned())
		require.False(t, odd.Aligned())
		require.ErrorContains(t, plan.Run(s, 1, odd), "CUDNN_STATUS_NOT_SUPPORTED")

		_, err = n.Plan(Convolution{Rows: 1 << 20, Channels: 64, Height: 64, Width: 64, Filters: 1, Size: 1, Stride: 1})
		require.ErrorContains(t, err, "CUDNN_STATUS_NOT_SUPPORTED", "sizes that overflow cuDNN's int")
		_, err = n.Plan(Convolution{Rows: 1, Channels: 1, Height: 2, Width: 2, Filters: 1, Size: 3, Stride: 1})
		require.ErrorContains(t, err, "cuda: convolution conv2d forward")
		t.Setenv("RINGTRAIN_EMULATOR_CUDNN_REFUSES", "heuristic")
		_, err = n.Plan(c.Convolution)
		require.ErrorContains(t, err, "CUDNN_STATUS_NOT_SUPPORTED")
		t.Setenv("RINGTRAIN_EMULATOR_CUDNN_REFUSES", "create")
		_, err = d.NewDNN(DNNOptions{})
		require.ErrorContains(t, err, "does not start: cudnnCreate: CUDNN_STATUS_NOT_INITIALIZED")
	})
}

// forgetDNN makes the process search for cuDNN again, and undoes that when the test ends.
func forgetDNN(t *testing.T) {
	t.Helper()
	dnn.Lock()
	defer dnn.Unlock()
	library, version := dnn.library, dnn.version
	dnn.library = nil
	t.Cleanup(func() {
		dnn.Lock()
		defer dnn.Unlock()
		if dnn.library, dnn.version = library, version; library != nil {
			require.NoError(t, bindDNN(library))
		}
	})
}

// cuDNN 8 works like cuDNN 9.
func TestConvolutionsByVersion8(t *testing.T) {
	file := emulatesDNN(t)
	forgetDNN(t)
	t.Setenv(CuDNN.Variable, filepath.Join(filepath.Dir(file), "libcudnn.so.8"))
	version, err := DNNVersion()
	require.NoError(t, err)
	require.Equal(t, "8.9.7", version)
	TestConvolutions(t)
	TestConvolutionAlgorithms(t)
}

func TestVersionsOfCuDNN(t *testing.T) {
	file := emulatesDNN(t)
	for version, want := range map[string]string{
		"8.4.1": "libcudnn.so.9 is cuDNN 8.4.1, and 8.5.0 or newer is needed: pip install nvidia-cudnn",
		"10.0":  "libcudnn.so.9 is cuDNN 10.0.0, which ringtrain does not know",
		"8.5.0": "", "8.9.7": "", "9.28.1": "",
	} {
		forgetDNN(t)
		t.Setenv("RINGTRAIN_EMULATOR_CUDNN", version)
		got, err := DNNVersion()
		found := Inspect().Libraries[3]
		require.Equal(t, "cuDNN", found.Name)
		if want == "" {
			require.NoError(t, err)
			require.Equal(t, version, got)
			require.Equal(t, Found{Name: "cuDNN", Path: file, Version: version}, found)
			continue
		}
		require.ErrorIs(t, err, ErrUnavailable)
		require.NotErrorIs(t, err, ErrNotInstalled)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
		require.Contains(t, found.Problem, want)
		require.NotEmpty(t, found.Instead)
	}
	t.Setenv("RINGTRAIN_EMULATOR_CUDNN", "")
	t.Setenv("RINGTRAIN_EMULATOR_CUDNN_REFUSES", "driver")
	forgetDNN(t)
	_, err := DNNVersion()
	require.ErrorContains(t, err, "is cuDNN 9.1.0, for CUDA 14, and the driver supports CUDA 13.0: update the driver, or pip install nvidia-cudnn-cu13")
}

// kit returns a toolkit with copies of the emulator's cuDNN 9. They cannot be links, because
// the search opens each file once.
func kit(t *testing.T, file string) string {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(root, "lib64"), os.DirFS(filepath.Dir(file))))
	return root
}

// The search skips a cuDNN that cannot be used.
func TestSearchForCuDNN(t *testing.T) {
	file := emulatesDNN(t)
	forgetDNN(t)
	t.Setenv(CuDNN.Variable, "")
	outdated := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(outdated, "lib64"), os.DirFS(filepath.Dir(file))))
	require.NoError(t, os.Rename(outdated+"/lib64/libnvrtc.so.13", outdated+"/lib64/libcudnn.so.9"))
	t.Setenv("CUDA_HOME", outdated)
	t.Setenv("CUDA_PATH", filepath.Dir(linked(t, file)))
	version, err := DNNVersion()
	require.NoError(t, err)
	require.Equal(t, "9.1.0", version)

	// Two cuDNN of one major version cannot be in the same process.
	forgetDNN(t)
	t.Setenv("RINGTRAIN_EMULATOR_CUDNN_REFUSES", "driver")
	first, second := kit(t, file), kit(t, file)
	t.Setenv("CUDA_HOME", first)
	t.Setenv("CUDA_PATH", second)
	_, err = DNNVersion()
	require.ErrorIs(t, err, ErrUnavailable)
	require.NotErrorIs(t, err, ErrNotInstalled)
	require.Regexp(t, "none of the [0-9] files found for cuDNN can be used: ", err.Error()) // some are still loaded
	require.ErrorContains(t, err, "cuDNN ("+second+"/lib64/libcudnn.so.9) cannot be used without its other libraries: libcudnn_graph.so.9 of another cuDNN is already loaded; ")
	require.ErrorContains(t, err, "is cuDNN 9.1.0, for CUDA 14, and the driver supports CUDA 13.0")
	require.NotContains(t, err.Error(), "\n")
}

// linked returns a directory lib64 that links to the directory of file.
func linked(t *testing.T, file string) string {
	t.Helper()
	link := filepath.Join(t.TempDir(), "lib64")
	require.NoError(t, os.Symlink(filepath.Dir(file), link))
	return link
}

// If the variable names a file that does not exist, that is a mistake and not ErrNotInstalled.
func TestCuDNNThatIsNotThere(t *testing.T) {
	need(t, Available())
	forgetDNN(t)
	t.Setenv(CuDNN.Variable, filepath.Join(t.TempDir(), "libcudnn.so.9"))
	_, err := DNNVersion()
	require.ErrorIs(t, err, ErrUnavailable)
	require.NotErrorIs(t, err, ErrNotInstalled)
	require.ErrorContains(t, err, "which RINGTRAIN_CUDNN_LIB names")

	_, err = Library{Name: "none", Sonames: []string{"libringtrain-none.so.1"}, Variable: "RINGTRAIN_NONE_LIB", Get: "invent it"}.Open(nil)
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorIs(t, err, ErrNotInstalled)
	require.ErrorContains(t, err, "no GPU can be used: there is no libringtrain-none.so.1 where the loader looks")
	require.ErrorContains(t, err, ": invent it, or set RINGTRAIN_NONE_LIB to the file")
}
