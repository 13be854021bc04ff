package nntest

import (
	"math"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

func testSoftmax(h *harness) {
	for _, width := range []int{1, 2, 10, 33, 1000} {
		const rows = 7
		x := h.normals(rows * width)
		x[0] += 1000 // overflows exp unless the maximum is subtracted
		x[len(x)-1] -= 1000
		want := make([]float64, 0, len(x))
		for r := range rows {
			want = append(want, softmax(wide(x[r*width:(r+1)*width]))...)
		}
		v := h.upload(x...)
		y := h.b.Temp(len(x))
		h.b.Softmax(y, v, width)
		h.near(want, y, 1e-5, "width %d", width)
		h.b.Softmax(v, v, width)
		require.Equal(h, h.read(y), h.read(v), "in place")
	}
}

func softmax(x []float64) []float64 {
	top := math.Inf(-1)
	for _, v := range x {
		top = max(top, v)
	}
	sum := 0.
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = math.Exp(v - top)
		sum += y[i]
	}
	for i := range y {
		y[i] /= sum
	}
	return y
}

func testCrossEntropy(h *harness) {
	p := h.upload(.5, .25, .25 /* row 1 */, .1, .9, 0 /* row 2 */, 1, 0, 0)
	labels := h.uploadInts(1, 1, 0)
	loss, d := h.upload(100), h.b.Temp(9)
	h.b.CrossEntropy(d, loss, p, labels)
	h.near([]float64{.5, -.75, .25, .1, -.1, 0, 0, 0, 0}, d, 1e-6)
	want := 100 - math.Log(.25) - math.Log(.9)
	h.near([]float64{want}, loss, 1e-6, "adds to the previous value")

	h.b.CrossEntropy(nn.Buffer{}, loss, p, labels)
	h.near([]float64{2*want - 100}, loss, 1e-6, "without gradient")
	h.b.CrossEntropy(p, loss, p, labels)
	require.Equal(h, h.read(d), h.read(p), "in place")

	impossible := h.b.Alloc(1)
	h.b.CrossEntropy(nn.Buffer{}, impossible, h.upload(0, 1), h.uploadInts(0))
	h.near([]float64{126 * math.Ln2}, impossible, 1e-6, "finite for probability 0")
	h.b.Zero(impossible)
	h.b.CrossEntropy(nn.Buffer{}, impossible, h.upload(), h.uploadInts())
	require.Equal(h, []float32{0}, h.read(impossible), "no rows")
}

func testSmoothedCrossEntropy(h *harness) {
	const smoothing = .25
	ps, labels := []float32{.5, .25, .25 /* row 1 */, .1, .9, 0 /* row 2 */, 1, 0, 0}, []int32{1, 1, 0}
	p, at := h.upload(ps...), h.uploadInts(labels...)
	loss, d := h.upload(100), h.b.Temp(9)
	want, gradient := 100., make([]float64, 9)
	for i, v := range wide(ps) {
		q := smoothing / 2
		if i%3 == int(labels[i/3]) {
			q = 1 - smoothing
		}
		want -= q * math.Log(max(v, 0x1p-126))
		gradient[i] = v - q
	}
	h.b.SmoothedCrossEntropy(d, loss, p, at, smoothing)
	h.near(gradient, d, 1e-6)
	h.near([]float64{want}, loss, 1e-6, "adds to the previous value; finite for probability 0")

	h.b.SmoothedCrossEntropy(nn.Buffer{}, loss, p, at, smoothing)
	h.near([]float64{2*want - 100}, loss, 1e-6, "without gradient")
	h.b.SmoothedCrossEntropy(p, loss, p, at, smoothing)
	require.Equal(h, h.read(d), h.read(p), "in place")

	h.b.Copy(p, ps)
	plain, same := h.b.Alloc(1), h.b.Alloc(1)
	h.b.CrossEntropy(d, plain, p, at)
	h.b.SmoothedCrossEntropy(p, same, p, at, 0)
	require.Equal(h, h.read(d), h.read(p), "without smoothing")
	h.near(wide(h.read(plain)), same, 1e-6, "without smoothing")
	h.b.SmoothedCrossEntropy(nn.Buffer{}, same, h.upload(), h.uploadInts(), smoothing)
	require.Equal(h, h.read(plain), h.read(same), "no rows")
}

func testCorrect(h *harness) {
	count := h.upload(10)
	scores := h.upload(
		1, 2, 0, // 1
		3, 3, 1, // 0: the first of equal scores
		-5, -4, -3, // 2
		0, 0, 0, // 0
	)
	h.b.Correct(count, scores, h.uploadInts(1, 0, 2, 1))
	require.Equal(h, []float32{13}, h.read(count))
	h.b.Correct(count, h.upload(), h.uploadInts())
	require.Equal(h, []float32{13}, h.read(count), "no rows")
}
