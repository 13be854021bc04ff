package nntest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

// fusedSize has the sizes of one affine layer.
type fusedSize struct{ rows, in, out int }

// fusedSizes are with and without multiples of vector sizes, and have some zeros.
var fusedSizes = []fusedSize{{16, 32, 64}, {1, 1, 1}, {3, 17, 5}, {130, 24, 10}, {70, 64, 129}, {0, 3, 2}, {2, 0, 3}}

// TestFuser checks matrix products and the methods of nn.Fuser: the part of TestBackend
// whose results a backend's options may change.
func TestFuser(t *testing.T, open func(t *testing.T) nn.Backend) { TestRounding(t, open, nil) }

// TestRounding is TestFuser for a backend that rounds the factors of products, such as to
// a 16-bit format. Inputs are rounded with round first, so that the products must not
// lose anything more.
func TestRounding(t *testing.T, open func(t *testing.T) nn.Backend, round func(float32) float32) {
	check(t, open, round, "Gemm", testGemm)
	check(t, open, round, "GemmBits", testGemmBits)
	check(t, open, round, "Fuser", testFuser)
}

// testFuser compares the methods of an nn.Fuser with the calls that they stand for. It
// passes if the backend is not an nn.Fuser.
func testFuser(h *harness) {
	f, ok := h.b.(nn.Fuser)
	if !ok {
		return
	}
	for _, size := range fusedSizes {
		for _, kind := range [][2]bool{{false, false}, {true, false}, {true, true}} {
			h.affineCase(f, size, kind[0], kind[1])
		}
		h.affineGradCase(f, size)
		h.softmaxLossCase(f, size.rows, size.out)
		h.b.Recycle()
	}
}

func (h *harness) affineCase(f nn.Fuser, size fusedSize, relu, gate bool) {
	rows, in, out := size.rows, size.in, size.out
	x, w, bias := h.temp(h.normals(rows*in)), h.temp(h.normals(out*in)), h.upload(h.normals(out)...)
	want, y := h.b.Temp(rows*out), h.b.Temp(rows*out)
	h.b.Gemm(want, x, w, rows, out, in, false, true, 0)
	h.b.AddBias(want, bias)
	if relu {
		h.b.Relu(want, want)
	}
	f.Affine(y, x, w, bias, relu, gate)
	h.near(wide(h.read(want)), y, 1e-5, "%d rows, %d to %d, relu %v, gate %v", rows, in, out, relu, gate)
	if !gate {
		return
	}
	// The next layer: y is its input, and the gradient is 0 where y is 0.
	const next = 6
	dy, after := h.temp(h.normals(rows*next)), h.temp(h.normals(next*out))
	dwant, dx := h.b.Temp(rows*out), h.b.Temp(rows*out)
	h.b.Gemm(dwant, dy, after, rows, out, next, false, false, 0)
	h.b.ReluGrad(dwant, dwant, y, 1)
	f.ReluInputGrad(dx, dy, after, y, rows)
	values, masked := h.read(y), h.read(dx)
	for i, v := range values {
		require.True(h, v > 0 || masked[i] == 0, "element %d is %v, but its gradient is %v", i, v, masked[i])
	}
	h.near(wide(h.read(dwant)), dx, 1e-5, "gradient of %d rows, %d", rows, out)
}

func (h *harness) affineGradCase(f nn.Fuser, size fusedSize) {
	rows, in, out := size.rows, size.in, size.out
	x, dy := h.temp(h.normals(rows*in)), h.temp(h.normals(rows*out))
	beforeW, beforeB := h.normals(out*in), h.normals(out)
	wantW, wantB, dw, db := h.upload(beforeW...), h.upload(beforeB...), h.upload(beforeW...), h.upload(beforeB...)
	for range 2 { // gradients accumulate
		h.b.SumRows(wantB, dy)
		h.b.Gemm(wantW, dy, x, out, in, rows, true, false, 1)
		f.AffineGrad(dw, db, dy, x, false)
	}
	h.near(wide(h.read(wantW)), dw, 1e-5, "dw of %d rows, %d to %d", rows, in, out)
	h.near(wide(h.read(wantB)), db, 1e-5, "db of %d rows, %d to %d", rows, in, out)
	for _, v := range []nn.Buffer{wantW, wantB, dw, db} {
		h.b.Zero(v)
	}
	h.b.SumRows(wantB, dy)
	h.b.Gemm(wantW, dy, x, out, in, rows, true, false, 1)
	f.AffineGrad(dw, db, dy, x, true)
	h.near(wide(h.read(wantW)), dw, 1e-5, "dw from 0 of %d rows, %d to %d", rows, in, out)
	h.near(wide(h.read(wantB)), db, 1e-5, "db from 0 of %d rows, %d to %d", rows, in, out)
}

func (h *harness) softmaxLossCase(f nn.Fuser, rows, classes int) {
	x, labels := h.normals(rows*classes), make([]int32, rows)
	for i := range labels {
		labels[i] = h.rand.Int32N(int32(classes))
	}
	want, got, places := h.temp(x), h.temp(x), h.uploadInts(labels...)
	wantLoss, loss := h.upload(0), h.upload(7) // must be overwritten
	if rows > 0 {
		h.b.Softmax(want, want, classes)
		h.b.CrossEntropy(want, wantLoss, want, places)
	}
	for range 2 {
		h.b.Copy(got, x)
		f.SoftmaxLoss(loss, got, places)
		h.near(wide(h.read(want)), got, 1e-6, "gradient of %d rows of %d", rows, classes)
		h.near(wide(h.read(wantLoss)), loss, 1e-6, "loss of %d rows of %d", rows, classes)
	}
}
