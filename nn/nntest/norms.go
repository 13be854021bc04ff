package nntest

import (
	"math"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

func testLayerNorm(h *harness) {
	const rows = 7
	for _, width := range []int{1, 2, 10, 16, 33, 128, 1000} {
		x, g, b, dy := h.normals(rows*width), h.normals(width), h.normals(width), h.normals(rows*width)
		for i := range x {
			x[i] = x[i]*2 + 3
		}
		const eps = 1e-3
		want, dx := make([]float64, len(x)), make([]float64, len(x))
		before := h.normals(2 * width)
		dg, db := wide(before[:width]), wide(before[width:])
		for r := range rows {
			in, d := wide(x[r*width:][:width]), wide(dy[r*width:][:width])
			mean, variance := moments(in)
			root := 1 / math.Sqrt(variance+eps)
			var sum, product float64
			for j, v := range in {
				z := (v - mean) * root
				want[r*width+j] = z*float64(g[j]) + float64(b[j])
				dg[j] += d[j] * z
				db[j] += d[j]
				sum += d[j] * float64(g[j]) / float64(width)
				product += d[j] * float64(g[j]) * z / float64(width)
			}
			for j, v := range in {
				dx[r*width+j] = root * (d[j]*float64(g[j]) - sum - (v-mean)*root*product)
			}
		}
		xs, dys, gs, bs := h.temp(x), h.temp(dy), h.upload(g...), h.upload(b...)
		y, m, gotDX := h.b.Temp(len(x)), h.b.Temp(2*rows), h.b.Temp(len(x))
		gotG, gotB := h.upload(before[:width]...), h.upload(before[width:]...)
		h.b.LayerNorm(y, m, xs, gs, bs, eps)
		h.near(want, y, 2e-5, "width %d", width)
		h.b.LayerNormGrad(gotDX, gotG, gotB, dys, xs, m, gs)
		h.near(dx, gotDX, 5e-4, "dx, width %d", width)
		h.near(dg, gotG, 1e-4, "dg, width %d", width)
		h.near(db, gotB, 1e-5, "db, width %d", width)
		inPlace := h.temp(dy)
		h.b.LayerNormGrad(inPlace, h.b.Alloc(width), h.b.Alloc(width), inPlace, xs, m, gs)
		require.Equal(h, h.read(gotDX), h.read(inPlace), "in place")
		h.alone(rows, func(part func(nn.Buffer) nn.Buffer) {
			h.b.LayerNorm(part(y), part(m), part(xs), gs, bs, eps)
			h.b.LayerNormGrad(part(gotDX), gotG, gotB, part(dys), part(xs), part(m), gs)
		}, y, gotDX)
		h.b.Recycle()
	}
	h.b.LayerNorm(h.upload(), h.upload(), h.upload(), h.upload(1), h.upload(1), 1) // no rows
}

// moments returns the mean and the biased variance.
func moments(v []float64) (mean, variance float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		variance += (x - mean) * (x - mean) / float64(len(v))
	}
	return mean, variance
}

func testBatchNorm(h *harness) {
	for _, size := range []struct{ rows, channels, plane int }{{1, 1, 2}, {5, 3, 1}, {4, 2, 9}, {3, 5, 16}, {6, 2, 169}, {33, 1, 40}} {
		for _, fixed := range []bool{false, true} {
			h.batchNormCase(size.rows, size.channels, size.plane, fixed)
			h.b.Recycle()
		}
	}
}

func (h *harness) batchNormCase(rows, channels, plane int, fixed bool) {
	n := rows * channels * plane
	x, dy, g, b := h.normals(n), h.normals(n), h.normals(channels), h.normals(channels)
	before := h.normals(2 * channels)
	m := nn.Moments{Mean: h.upload(h.normals(channels)...), Variance: h.upload(h.normals(channels)...), Plane: plane, Eps: .01, Fixed: fixed}
	xs, y, dx := h.temp(x), h.b.Temp(n), h.b.Temp(n)
	if fixed {
		m.Variance = h.upload(make([]float32, channels)...)
		h.b.Axpy(m.Variance, 1.5, h.upload(ones(channels)...))
	} else {
		h.b.ChannelMoments(m, xs)
	}
	means, variances := wide(h.read(m.Mean)), wide(h.read(m.Variance))
	want, grad, dg, db := make([]float64, n), make([]float64, n), wide(before[:channels]), wide(before[channels:])
	for c := range channels {
		var in, d []float64
		var at []int
		for i := range n {
			if i/plane%channels == c {
				in, d, at = append(in, float64(x[i])), append(d, float64(dy[i])), append(at, i)
			}
		}
		mean, variance := means[c], variances[c]
		if !fixed {
			mean, variance = moments(in)
			h.near([]float64{mean, variance}, h.upload(float32(means[c]), float32(variances[c])), 1e-5, "moments of %d rows, %d channels of %d", rows, channels, plane)
		}
		root := 1 / math.Sqrt(variance+.01)
		var sum, product float64
		for i, v := range in {
			z := (v - mean) * root
			want[at[i]] = z*float64(g[c]) + float64(b[c])
			sum += d[i]
			product += d[i] * z
		}
		dg[c] += product
		db[c] += sum
		for i, v := range in {
			grad[at[i]] = float64(g[c]) * root * d[i]
			if !fixed {
				grad[at[i]] -= float64(g[c]) * root * (sum + (v-mean)*root*product) / float64(len(in))
			}
		}
	}
	what := []any{"%d rows, %d channels of %d, fixed %v", rows, channels, plane, fixed}
	gs, gotG, gotB := h.upload(g...), h.upload(before[:channels]...), h.upload(before[channels:]...)
	h.b.BatchNorm(y, xs, gs, h.upload(b...), m)
	h.near(want, y, 5e-5, what...)
	h.b.BatchNormGrad(dx, gotG, gotB, h.temp(dy), xs, gs, m)
	h.near(grad, dx, 2e-4, what...)
	h.near(dg, gotG, 1e-4, what...)
	h.near(db, gotB, 1e-4, what...)
	inPlace := h.temp(dy)
	h.b.BatchNormGrad(inPlace, h.b.Alloc(channels), h.b.Alloc(channels), inPlace, xs, gs, m)
	require.Equal(h, h.read(dx), h.read(inPlace), "in place")
}

func ones(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = 1
	}
	return v
}
