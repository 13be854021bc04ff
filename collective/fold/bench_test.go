package fold

import (
	"fmt"
	"testing"
)

// The throughput is memory traffic: two operands read, one written.
func BenchmarkInto(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20, 16 << 20} {
		for _, op := range ops {
			benchmarkInto(b, "float32", op, size, loop32)
			benchmarkInto(b, "float64", op, size, loop64)
			benchmarkInto(b, "int32", op, size, foldIntegers[int32])
			benchmarkInto(b, "int64", op, size, foldIntegers[int64])
			benchmarkInto(b, "uint8", op, size, foldIntegers[uint8])
		}
	}
}

func benchmarkInto[T Number](b *testing.B, name string, op Op, size int, loop func(op Op, dst, x, y []T)) {
	n := size / len(memory(make([]T, 1)))
	dst, x, y := make([]T, n), make([]T, n), make([]T, n)
	measure(b, name+"/"+opNames[op], size, 3*size,
		func() { loop(op, dst, x, y) }, func() { Into(op, dst, x, y) })
}

// Operands of 256 KB, in blocks of 16 KB as groups use them: the block just written is
// still in cache for the next operand.
func BenchmarkSumAll(b *testing.B) {
	const size, block = 256 << 10, 16 << 10
	for _, c := range []struct {
		name string
		by   float32
	}{{"sum", 1}, {"mean", .25}} {
		for _, n := range []int{2, 3, 4, 8} {
			operands, parts := makeOperands(make([]float32, n*(size/4+offsets)), n, size/4, 0), make([][]float32, n)
			dst := make([]float32, size/4)
			each := func(fold func(dst []float32)) {
				for lo := 0; lo < len(dst); lo += block / 4 {
					for i, x := range operands {
						parts[i] = x[lo : lo+block/4]
					}
					fold(dst[lo : lo+block/4])
				}
			}
			measure(b, fmt.Sprintf("%s/%d", c.name, n), size, (n+1)*size, func() {
				each(func(dst []float32) {
					Into(Sum, dst, parts[0], parts[1])
					for _, x := range parts[2:] {
						Into(Sum, dst, dst, x)
					}
					if c.by != 1 {
						Scale(dst, c.by)
					}
				})
			}, func() { each(func(dst []float32) { SumAll(dst, parts, c.by) }) })
		}
	}
}

func BenchmarkMeanAll(b *testing.B) {
	for _, n := range []int{2, 4, 8} {
		benchmarkMeanAll[int32](b, "int32", n)
		benchmarkMeanAll[uint8](b, "uint8", n)
	}
}

func benchmarkMeanAll[T int32 | uint8](b *testing.B, name string, n int) {
	operands, dst := makeOperands(poolIntegers[T](n*(4096+offsets), seeded()), n, 4096, 0), make([]T, 4096)
	size := len(memory(dst))
	measure(b, fmt.Sprintf("%s/%d", name, n), size, (n+1)*size,
		func() { meanEach(dst, operands, 0) }, func() { MeanAll(dst, operands) })
}

func BenchmarkScale(b *testing.B) {
	for _, size := range []int{4 << 10, 1 << 20} {
		x := make([]float32, size/4)
		measure(b, "float32", size, 2*size, func() { scaleFloats(x, .25, nan32) }, func() { Scale(x, .25) })
	}
}

func BenchmarkFormats(b *testing.B) {
	for _, size := range []int{4 << 10, 1 << 20} { // of the float32 side
		wide, narrow := make([]float32, size/4), make([]uint16, size/4)
		for i := range wide {
			wide[i] = float32(i) / 16
		}
		for _, l := range layouts {
			measure(b, l.name+"/round", size, size+size/2,
				func() { roundEach(narrow, wide, l.format) }, func() { Round(narrow, wide, l.format) })
			measure(b, l.name+"/widen", size, size+size/2,
				func() { widenEach(wide, narrow, l.format) }, func() { Widen(wide, narrow, l.format) })
		}
	}
}

// measure times the loop and the exported function, on size bytes that cause the
// given memory traffic.
func measure(b *testing.B, name string, size, traffic int, loop, fast func()) {
	for _, way := range []struct {
		name string
		run  func()
	}{{"loop", loop}, {"fast", fast}} {
		b.Run(fmt.Sprintf("%s/%dKB/%s", name, size>>10, way.name), func(b *testing.B) {
			b.SetBytes(int64(traffic))
			for b.Loop() {
				way.run()
			}
		})
	}
}
