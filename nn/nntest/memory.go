package nntest

import (
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

func testAlloc(h *harness) {
	for _, n := range []int{0, 1, 15, 16, 17, 5000} {
		v := h.b.Alloc(n)
		require.Equal(h, n, v.Len())
		require.Equal(h, nn.Float32, v.DType())
		require.Equal(h, make([]float32, n), h.read(v))
		i := h.b.AllocInts(n)
		require.Equal(h, n, i.Len())
		require.Equal(h, nn.Int32, i.DType())
	}
	// Neighbours do not overlap, and Recycle does not free them.
	a, b := h.b.Alloc(5), h.b.Alloc(5)
	h.b.Copy(a, []float32{1, 2, 3, 4, 5})
	h.b.Copy(b, []float32{6, 7, 8, 9, 10})
	h.b.Recycle()
	h.poison()
	require.Equal(h, []float32{1, 2, 3, 4, 5}, h.read(a))
	require.Equal(h, []float32{6, 7, 8, 9, 10}, h.read(b))
}

// testTemp keeps many temporaries of mixed sizes alive at once, over several rounds that
// each need more memory than the last.
func testTemp(h *harness) {
	for round := 1; round <= 4; round++ {
		var live []nn.Buffer
		for i := range 40 {
			n := (i * i * round) % 3001
			v := h.b.Temp(n)
			require.Equal(h, n, v.Len())
			fill := make([]float32, n)
			for j := range fill {
				fill[j] = float32(i)
			}
			h.b.Copy(v, fill)
			live = append(live, v)
		}
		for i, v := range live {
			for _, x := range h.read(v) {
				require.Equal(h, float32(i), x)
			}
		}
		h.b.Recycle()
	}
}

func testCopy(h *harness) {
	src := h.normals(100)
	v := h.b.Alloc(100)
	h.b.Copy(v, src)
	sent := append([]float32(nil), src...)
	clear(src) // Copy no longer needs it
	require.Equal(h, sent, h.read(v))
	require.Equal(h, sent[10:20], h.read(v.Slice(10, 20)))

	h.b.Copy(v.Slice(1, 3), []float32{7, 8})
	require.Equal(h, []float32{sent[0], 7, 8, sent[3]}, h.read(v.Slice(0, 4)))

	h.b.Zero(v.Slice(1, 2))
	require.Equal(h, []float32{sent[0], 0, 8, sent[3]}, h.read(v.Slice(0, 4)))

	// Integers cannot be read back, so check them through a kernel.
	labels := h.uploadInts(0, 1)
	correct := h.b.Alloc(1)
	scores := h.upload(1, 0 /* row 1 */, 1, 0)
	h.b.Correct(correct, scores, labels)
	require.Equal(h, []float32{1}, h.read(correct))
	h.b.Zero(labels)
	h.b.Correct(correct, scores, labels)
	require.Equal(h, []float32{3}, h.read(correct))
}
