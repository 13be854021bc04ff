//go:build linux && (amd64 || arm64) && !static

package kernels

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

func (h *harness) squaredError() { h.errors("squared_error", h.cpu.SquaredError) }

func (h *harness) absoluteError() { h.errors("absolute_error", h.cpu.AbsoluteError) }

func (h *harness) huberError() {
	for _, delta := range []float32{.3, 2} {
		h.errors("huber_error", func(dy, loss, y, t nn.Buffer) { h.cpu.HuberError(dy, loss, y, t, delta) }, delta)
	}
}

// errors compares a loss of predictions and targets with that of nn/cpu. One prediction is
// exact. A NaN stays NaN.
func (h *harness) errors(kernel string, want func(dy, loss, y, t nn.Buffer), more ...any) {
	h.vectors(func(n int) {
		y, target := h.normals(n), h.normals(n)
		copy(y[min(n, 1):min(n, 2)], target[min(n, 1):])
		d, loss := h.host(y), h.host([]float32{3})
		gotY, gotTarget, gotLoss := upload(h, y), upload(h, target), upload(h, []float32{3})
		want(d, loss, d, h.host(target))
		after := append(append([]any{}, more...), int64(n))
		h.launch(kernel, n, append([]any{gotLoss, gotY, gotTarget}, after...)...)
		h.near(loss, gotLoss, 1e-6, "loss of %d", n)
		h.launch(kernel+"_grad", n, append([]any{gotY, gotY, gotTarget}, after...)...)
		h.same(d, gotY, "gradient of %d", n)
	})
	y, target := []float32{1, float32(math.NaN()), 3}, []float32{1, 1, 1}
	d, got := h.host(y), upload(h, y)
	want(d, h.host([]float32{0}), d, h.host(target))
	h.launch(kernel+"_grad", 3, append(append([]any{got, got, upload(h, target)}, more...), int64(3))...)
	h.near(d, got, 0, "NaN")
}

func (h *harness) smoothedCrossEntropy() {
	const smoothing = .2
	h.matrices(func(rows, columns int) {
		p, labels := h.normals(rows*columns), h.labels(rows, columns)
		probabilities, loss, d := h.host(p), h.host([]float32{3}), h.host(p)
		h.cpu.Softmax(probabilities, probabilities, columns)
		probabilities.Float32s()[labels[0]] = 0 // an impossible class
		h.cpu.SmoothedCrossEntropy(d, loss, probabilities, ints(labels), smoothing)
		gotP, gotLoss := upload(h, probabilities.Float32s()), upload(h, []float32{3})
		on, off := 1-float32(smoothing), float32(smoothing)/float32(max(1, columns-1))
		h.launch("smoothed_cross_entropy", rows, gotLoss, gotP, upload(h, labels), on, off, int32(rows), int32(columns))
		h.near(loss, gotLoss, 1e-6, "loss of %d by %d", rows, columns)
		h.launch("smoothed_cross_entropy_grad", rows*columns, gotP, gotP, upload(h, labels), on, off, int32(rows), int32(columns))
		h.same(d, gotP, "gradient of %d by %d", rows, columns)
	})
}
