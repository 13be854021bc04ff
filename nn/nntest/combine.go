package nntest

import (
	"slices"

	"github.com/stretchr/testify/require"
)

func testCombine(h *harness) {
	for _, n := range []int{0, 1, 4, 33, 1000} {
		a, b := h.normals(n), h.normals(n)
		want := make([]float32, n)
		for i := range want {
			want[i] = a[i] + b[i]
		}
		x, y := h.upload(a...), h.b.Temp(n)
		h.b.Add(y, x, h.upload(b...))
		require.Equal(h, want, h.read(y))
		h.b.Add(x, x, h.upload(b...))
		require.Equal(h, want, h.read(x), "in place")
	}
	for _, s := range []struct{ rows, width, at, part int }{{1, 1, 0, 1}, {5, 7, 2, 3}, {4, 16, 4, 8}, {3, 33, 0, 33}, {6, 9, 8, 1}, {0, 3, 1, 2}} {
		whole, part := h.normals(s.rows*s.width), h.normals(s.rows*s.part)
		want, cut := slices.Clone(whole), make([]float32, 0, len(part))
		for i := range s.rows {
			cut = append(cut, whole[i*s.width+s.at:][:s.part]...)
			copy(want[i*s.width+s.at:], part[i*s.part:][:s.part])
		}
		y, x := h.upload(whole...), h.b.Temp(len(part))
		h.b.Extract(x, y, s.width, s.at, s.part)
		require.Equal(h, cut, h.read(x), "%+v", s)
		h.b.Insert(y, h.upload(part...), s.width, s.at, s.part)
		require.Equal(h, want, h.read(y), "%+v", s)
	}
}
