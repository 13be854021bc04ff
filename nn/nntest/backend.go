package nntest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

// TestBackend checks every promise of nn.Backend. It opens a backend for each subtest and
// closes it. Arithmetic is compared with float64 loops, within float32 rounding.
func TestBackend(t *testing.T, open func(t *testing.T) nn.Backend) {
	for _, c := range []struct {
		name string
		test func(h *harness)
	}{
		{"Alloc", testAlloc},
		{"Temp", testTemp},
		{"Copy", testCopy},
		{"Gemm", testGemm},
		{"GemmBits", testGemmBits},
		{"AddBias", testAddBias},
		{"SumRows", testSumRows},
		{"Rescale", testRescale},
		{"Relu", testRelu},
		{"ReluGrad", testReluGrad},
		{"Dropout", testDropout},
		{"DropoutEdge", testDropoutEdge},
		{"DropoutSharding", testDropoutSharding},
		{"Softmax", testSoftmax},
		{"CrossEntropy", testCrossEntropy},
		{"Correct", testCorrect},
		{"SmoothedCrossEntropy", testSmoothedCrossEntropy},
		{"SquaredError", testSquaredError},
		{"HuberError", testHuberError},
		{"AbsoluteError", testAbsoluteError},
		{"Gelu", testGelu},
		{"Maxout", testMaxout},
		{"LayerNorm", testLayerNorm},
		{"BatchNorm", testBatchNorm},
		{"Embed", testEmbed},
		{"Attention", testAttention},
		{"Combine", testCombine},
		{"Conv2D", testConv2D},
		{"Conv2DGrad", testConv2DGrad},
		{"RowsOfImages", testRowsOfImages},
		{"MaxPool", testMaxPool},
		{"MaxPoolTies", testMaxPoolTies},
		{"AvgPool", testAvgPool},
		{"ScaleAxpy", testScaleAxpy},
		{"SquaredNorm", testSquaredNorm},
		{"Adam", testAdam},
		{"SGD", testSGD},
		{"UpdateParts", testUpdateParts},
		{"Subnormal", testSubnormal},
		{"Fuser", testFuser},
		{"Arena", testArena},
		{"Follow", testFollow},
		{"Pace", testPace},
		{"Commit", testCommit},
		{"Record", testRecord},
		{"Do", testDo},
		{"Fail", testFail},
		{"Close", testClose},
	} {
		check(t, open, nil, c.name, c.test)
	}
}

// check runs one test on its own backend. round may be nil.
func check(t *testing.T, open func(t *testing.T) nn.Backend, round func(float32) float32, name string, test func(h *harness)) {
	t.Run(name, func(t *testing.T) {
		b := open(t)
		h := &harness{T: t, b: b, rand: rand.New(rand.NewPCG(1, 2)), round: round}
		require.NoError(t, b.Do(t.Context(), func() error {
			h.poison()
			test(h)
			return nil
		}))
		if name != "Close" {
			require.NoError(t, b.Sync(t.Context()))
			require.NoError(t, b.Close())
		}
	})
}

// harness is a backend under test, with helpers to fill and read its memory.
type harness struct {
	*testing.T
	b     nn.Backend
	rand  *rand.Rand
	round func(float32) float32 // applied to normals if not nil
}

// poison fills temporary memory with NaN, to expose kernels that read memory they
// should only write.
func (h *harness) poison() {
	nan := make([]float32, 1<<16)
	for i := range nan {
		nan[i] = float32(math.NaN())
	}
	h.b.Copy(h.b.Temp(len(nan)), nan)
	h.b.Recycle()
}

// normals returns n normally distributed random numbers.
func (h *harness) normals(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		if v[i] = float32(h.rand.NormFloat64()); h.round != nil {
			v[i] = h.round(v[i])
		}
	}
	return v
}

// upload returns v in the backend's memory.
func (h *harness) upload(v ...float32) nn.Buffer {
	b := h.b.Alloc(len(v))
	h.b.Copy(b, v)
	return b
}

// uploadInts returns v in the backend's memory.
func (h *harness) uploadInts(v ...int32) nn.Buffer {
	b := h.b.AllocInts(len(v))
	h.b.CopyInts(b, v)
	return b
}

// read returns the contents of b.
func (h *harness) read(b nn.Buffer) []float32 {
	v := make([]float32, b.Len())
	h.b.Read(v, b)
	return v
}

// near fails the test unless each element of got differs from want by at most
// tolerance·(1+|want|).
func (h *harness) near(want []float64, got nn.Buffer, tolerance float64, what ...any) {
	h.Helper()
	values := h.read(got)
	require.Len(h, values, len(want), what...)
	for i, w := range want {
		// InDelta also fails if exactly one of the two is NaN.
		require.InDelta(h, w, float64(values[i]), tolerance*(1+math.Abs(w)), what...)
	}
}

// wide converts v to float64.
func wide(v []float32) []float64 {
	w := make([]float64, len(v))
	for i, x := range v {
		w[i] = float64(x)
	}
	return w
}
