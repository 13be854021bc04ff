package cpu

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

// Rows keep their results whatever block they are in, and a NaN or an infinity spoils its own row
// alone.
func TestSoftmaxOfBlocks(t *testing.T) {
	const rows, width = 1000, 13 // several blocks, and a kernel's lanes hold parts of two rows
	b, r := New(Options{}), waves(rows*width)
	y := make([]float32, rows*width)
	for i, spoil := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, column := range []int{0, 5} {
			r[(100*i+10*column)*width+column] = float32(spoil)
		}
	}
	b.Softmax(nn.Host(y), nn.Host(r), width)
	for i := range rows {
		row, alone := r[i*width:][:width], make([]float32, width)
		b.Softmax(nn.Host(alone), nn.Host(row), width)
		same(t, alone, y[i*width:][:width], "a row alone")
		var top, sum float64 = math.Inf(-1), 0
		for _, v := range row {
			top = max(top, float64(v))
		}
		for _, v := range row {
			sum += math.Exp(float64(v) - top)
		}
		for j, v := range row {
			if want := math.Exp(float64(v)-top) / sum; want == want {
				require.InDelta(t, want, alone[j], 5e-7)
				continue
			}
			require.True(t, math.IsNaN(float64(alone[j])), "row %d", i)
		}
	}
}

// waves returns n numbers from -3 to 3.
func waves(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(math.Sin(float64(i*i)) * 3)
	}
	return v
}
