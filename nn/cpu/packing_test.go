package cpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
)

// A convolution packs several images at a time. The bits are those of a plain loop over the
// elements of each filter, one image after the other, for any stride and padding.
func TestConvolutionPacking(t *testing.T) {
	const filters = 3
	for _, s := range []nn.Window{
		{Channels: 1, Height: 28, Width: 28, Size: 3, Stride: 1},
		{Channels: 2, Height: 28, Width: 40, Size: 3, Stride: 1},
		{Channels: 2, Height: 12, Width: 10, Size: 3, Stride: 1},
		{Channels: 2, Height: 14, Width: 14, Size: 3, Stride: 1, Padding: 1},
		{Channels: 3, Height: 13, Width: 11, Size: 3, Stride: 2, Padding: 1},
		{Channels: 3, Height: 14, Width: 9, Size: 1, Stride: 2},
		{Channels: 2, Height: 17, Width: 16, Size: 5, Stride: 3, Padding: 4},
		{Channels: 2, Height: 64, Width: 64, Size: 2, Stride: 4, Padding: 1},
		{Channels: 1, Height: 2, Width: 3, Size: 2, Stride: 1},
	} {
		for _, rows := range []int{0, 1, 2, 31} {
			taps := s.Channels * s.Size * s.Size
			x, w, bias, dy := normals(rows*s.In()), normals(filters*taps), normals(filters), normals(rows*filters*s.Plane())
			y, dx := plainConvolution(s, x, w, bias, dy)
			b := cpu.New(cpu.Options{})
			on := func(v []float32) nn.Buffer {
				buffer := b.Alloc(len(v))
				b.Copy(buffer, v)
				return buffer
			}
			gotY, gotDX := b.Alloc(len(y)), on(x)
			b.Conv2D(gotY, on(x), on(w), on(bias), s)
			require.Equal(t, y, gotY.Float32s(), "%+v, %d rows", s, rows)
			b.Conv2DInputGrad(gotDX, on(dy), on(w), s)
			require.Equal(t, dx, gotDX.Float32s(), "%+v, %d rows", s, rows)
		}
	}
}

// plainConvolution returns what Conv2D and Conv2DInputGrad compute.
func plainConvolution(s nn.Window, x, w, bias, dy []float32) (y, dx []float32) {
	taps, rows := s.Channels*s.Size*s.Size, len(x)/s.In()
	y, dx = make([]float32, len(dy)), make([]float32, len(x))
	for row := range rows {
		for o := range bias {
			out := (row*len(bias) + o) * s.Plane()
			for i := range s.Plane() {
				y[out+i] = bias[o]
			}
			for k := range taps {
				for i := range s.Plane() {
					u := i/s.OutWidth()*s.Stride + k/s.Size%s.Size - s.Padding
					v := i%s.OutWidth()*s.Stride + k%s.Size - s.Padding
					if u < 0 || v < 0 || u >= s.Height || v >= s.Width {
						continue
					}
					at := row*s.In() + (k/(s.Size*s.Size)*s.Height+u)*s.Width + v
					y[out+i] += float32(w[o*taps+k] * x[at])
					dx[at] += float32(w[o*taps+k] * dy[out+i])
				}
			}
		}
	}
	return y, dx
}
