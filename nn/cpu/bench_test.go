package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ringtrain/ringtrain/nn"
)

// Each kernel next to its loop, on one block that fits the L1 cache and on one that does not.
func BenchmarkKernels(b *testing.B) {
	for _, n := range []int{1 << 10, 1 << 17} {
		var v [vectors][]float32
		for i := range v {
			v[i] = make([]float32, n)
		}
		for _, c := range kernelCases {
			for _, way := range []struct {
				name string
				run  func(v [][]float32, a float32)
			}{{"loop", c.loop}, {"fast", c.fast}} {
				b.Run(fmt.Sprintf("%s/%d/%s", c.name, n, way.name), func(b *testing.B) {
					b.SetBytes(int64(4 * n))
					for b.Loop() {
						way.run(v[:], .5)
					}
				})
			}
		}
	}
}

func BenchmarkDropout(b *testing.B) {
	const rows, width = 128, 128
	be := New(Options{})
	x := be.Alloc(rows * width)
	m := newMask(.2, 1, nn.Stream{Seed: 1})
	b.Run("loop", func(b *testing.B) {
		for b.Loop() {
			for row := range rows {
				v := x.Float32s()[row*width:][:width]
				dropLoop(v, v, m, row, 0)
			}
		}
	})
	b.Run("fast", func(b *testing.B) {
		for b.Loop() {
			be.Dropout(x, x, width, .2, 1, nn.Stream{Seed: 1})
		}
	})
}

// The products of an MNIST step and small ones. scripts/bench-gemm.sh compares them with other
// libraries.
func BenchmarkGemm(b *testing.B) {
	be := New(Options{})
	for _, s := range []struct {
		m, n, k        int
		transX, transY bool
	}{
		{128, 128, 784, false, true}, {128, 784, 128, true, false}, {128, 128, 128, false, true},
		{128, 10, 128, false, true}, {16, 16, 16, false, true}, {4, 4, 4, false, true},
	} {
		x, y, z := be.Alloc(s.m*s.k), be.Alloc(s.k*s.n), be.Alloc(s.m*s.n)
		r := rand.New(rand.NewPCG(1, 2))
		for _, v := range []nn.Buffer{x, y} {
			for i := range v.Float32s() {
				v.Float32s()[i] = r.Float32()
			}
		}
		b.Run(fmt.Sprintf("%dx%dx%d/%s", s.m, s.n, s.k, be.BLAS()), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				be.Gemm(z, x, y, s.m, s.n, s.k, s.transX, s.transY, 0)
			}
			b.ReportMetric(float64(2*s.m*s.n*s.k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
