package nntest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

// TestBackend checks every promise of nn.Backend on backends that open makes,
// one for each subtest; it closes them itself. Arithmetic is compared with
// float64 loops, within rounding of float32.
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
		{"Conv2D", testConv2D},
		{"Conv2DGrad", testConv2DGrad},
		{"RowsOfImages", testRowsOfImages},
		{"MaxPool", testMaxPool},
		{"MaxPoolTies", testMaxPoolTies},
		{"ScaleAxpy", testScaleAxpy},
		{"SquaredNorm", testSquaredNorm},
		{"Adam", testAdam},
		{"SGD", testSGD},
		{"UpdateParts", testUpdateParts},
		{"Subnormal", testSubnormal},
		{"Fuser", testFuser},
		{"Arena", testArena},
		{"Pace", testPace},
		{"Record", testRecord},
		{"Do", testDo},
		{"Close", testClose},
	} {
		check(t, open, nil, c.name, c.test)
	}
}

// check runs one test on a backend of its own. round may be nil.
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

// harness is a backend under test with the means to fill and read its memory.
type harness struct {
	*testing.T
	b     nn.Backend
	rand  *rand.Rand
	round func(float32) float32 // of normals; nil leaves them
}

// poison fills temporary memory with NaN, so that a kernel which reads what it
// should only write is found out.
func (h *harness) poison() {
	nan := make([]float32, 1<<16)
	for i := range nan {
		nan[i] = float32(math.NaN())
	}
	h.b.Copy(h.b.Temp(len(nan)), nan)
	h.b.Recycle()
}

// normals returns n random numbers around 0.
func (h *harness) normals(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		if v[i] = float32(h.rand.NormFloat64()); h.round != nil {
			v[i] = h.round(v[i])
		}
	}
	return v
}

// upload returns v in memory of the backend.
func (h *harness) upload(v ...float32) nn.Buffer {
	b := h.b.Alloc(len(v))
	h.b.Copy(b, v)
	return b
}

// uploadInts returns v in memory of the backend.
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

// near fails the test unless each element of got is within tolerance of want,
// relative to the size of want and to 1.
func (h *harness) near(want []float64, got nn.Buffer, tolerance float64, what ...any) {
	h.Helper()
	values := h.read(got)
	require.Len(h, values, len(want), what...)
	for i, w := range want {
		// InDelta fails for NaN on either side unless both are.
		require.InDelta(h, w, float64(values[i]), tolerance*(1+math.Abs(w)), what...)
	}
}

// wide returns v in float64.
func wide(v []float32) []float64 {
	w := make([]float64, len(v))
	for i, x := range v {
		w[i] = float64(x)
	}
	return w
}
