package nntest

import (
	"math"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

func testAddBias(h *harness) {
	y := h.upload(1, 2, 3, 4, 5, 6)
	h.b.AddBias(y, h.upload(10, 20, 30))
	require.Equal(h, []float32{11, 22, 33, 14, 25, 36}, h.read(y))
}

func testSumRows(h *harness) {
	sum := h.upload(100, 200)
	h.b.SumRows(sum, h.upload(1, 2, 3, 4, 5, 6))
	require.Equal(h, []float32{109, 212}, h.read(sum), "adds to the previous value")
	h.b.SumRows(sum, h.upload())
	require.Equal(h, []float32{109, 212}, h.read(sum), "no rows")

	const rows, width = 300, 37
	v := h.normals(rows * width)
	want := make([]float64, width)
	for i, x := range v {
		want[i%width] += float64(x)
	}
	sum = h.b.Alloc(width)
	h.b.SumRows(sum, h.upload(v...))
	h.near(want, sum, 1e-4)
}

func testRescale(h *harness) {
	x, y := h.upload(-1, 0, 2), h.b.Temp(3)
	h.b.Rescale(y, x, .5, 3)
	require.Equal(h, []float32{2.5, 3, 4}, h.read(y))
	h.b.Rescale(x, x, -2, 0)
	require.Equal(h, []float32{2, 0, -4}, h.read(x), "in place")
}

func testRelu(h *harness) {
	x := h.upload(-1, 0, 2, -3, 4, 1e-30)
	y := h.b.Temp(6)
	h.b.Relu(y, x)
	want := []float32{0, 0, 2, 0, 4, 1e-30}
	require.Equal(h, want, h.read(y))
	h.b.Relu(x, x)
	require.Equal(h, want, h.read(x), "in place")

	nan := h.upload(float32(math.NaN()))
	h.b.Relu(nan, nan)
	require.True(h, math.IsNaN(float64(h.read(nan)[0])), "NaN is kept")
}

func testReluGrad(h *harness) {
	dy := h.upload(1, 2, 3, 4)
	y := h.upload(0, 5, -1, 1e-30)
	dx := h.b.Temp(4)
	h.b.ReluGrad(dx, dy, y, 1)
	require.Equal(h, []float32{0, 2, 0, 4}, h.read(dx))
	h.b.ReluGrad(dy, dy, y, 2)
	require.Equal(h, []float32{0, 4, 0, 8}, h.read(dy), "in place, scaled")
}

func testDropout(h *harness) {
	stream := nn.Stream{Seed: 11, Step: 1 << 40, First: 3, Stride: 2}
	for _, rate := range []float32{0, .1, .5, .2, .99} {
		for _, width := range []int{1, 3, 4, 130} {
			const rows = 9
			x := h.normals(rows * width)
			want := dropped(x, width, rate, 5, stream)
			v := h.upload(x...)
			y := h.b.Temp(len(x))
			h.b.Dropout(y, v, width, rate, 5, stream)
			require.Equal(h, want, h.read(y), "rate %v width %d", rate, width)
			h.b.Dropout(v, v, width, rate, 5, stream)
			require.Equal(h, want, h.read(v), "in place")
		}
	}
	// Over many elements the surviving fraction is as requested.
	const n = 40000
	ones := make([]float32, n)
	for i := range ones {
		ones[i] = 1
	}
	v := h.upload(ones...)
	h.b.Dropout(v, v, 100, .2, 0, nn.Stream{Seed: 1})
	kept := 0
	for _, y := range h.read(v) {
		if y != 0 {
			kept++
		}
	}
	require.InDelta(h, .8*n, kept, 5*math.Sqrt(n*.8*.2))
}

// testDropoutEdge sets the rate to exactly U of an element, which is then kept, and to
// half a step more, which drops it.
func testDropoutEdge(h *harness) {
	s := nn.Stream{Seed: 21}
	for row := range 20 {
		s.First = row
		word := s.Draw(0, 0, 0)[0] >> 8
		if word >= 1<<23 { // float32 cannot represent half a step more
			continue
		}
		exact, above := float32(word)/(1<<24), (float32(word)+.5)/(1<<24)
		v := h.upload(1)
		h.b.Dropout(v, v, 1, exact, 0, s)
		require.Equal(h, []float32{1 / (1 - exact)}, h.read(v))
		h.b.Dropout(v, v, 1, above, 0, s)
		require.Equal(h, []float32{0}, h.read(v))
	}
}

// dropped applies dropout as specified, with U as a fraction.
func dropped(x []float32, width int, rate float32, layer uint32, s nn.Stream) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		row, column := i/width, i%width
		u := float64(s.Draw(layer, row, column/4)[column%4]>>8) / (1 << 24)
		if u >= float64(rate) {
			y[i] = v * (1 / (1 - rate))
		}
	}
	return y
}

// testDropoutSharding splits the rows of a batch over three workers and requires the same
// rows as for the whole batch.
func testDropoutSharding(h *harness) {
	const rows, width, workers = 12, 10, 3
	x := h.normals(rows * width)
	whole := h.upload(x...)
	h.b.Dropout(whole, whole, width, .4, 1, nn.Stream{Seed: 9, Step: 8, First: 100})
	want := h.read(whole)
	for w := range workers {
		var mine, wanted []float32
		for r := w; r < rows; r += workers {
			mine = append(mine, x[r*width:(r+1)*width]...)
			wanted = append(wanted, want[r*width:(r+1)*width]...)
		}
		v := h.upload(mine...)
		h.b.Dropout(v, v, width, .4, 1, nn.Stream{Seed: 9, Step: 8, First: 100 + w, Stride: workers})
		require.Equal(h, wanted, h.read(v))
	}
}
