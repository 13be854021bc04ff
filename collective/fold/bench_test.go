package fold

import (
	"fmt"
	"testing"
)

// What moves is counted as memory traffic: two operands read, one written.
func BenchmarkInto(b *testing.B) {
	for _, size := range []int{4 << 10, 256 << 10, 1 << 20, 16 << 20} {
		for _, op := range []struct {
			name string
			op   Op
		}{{"sum", Sum}, {"min", Min}} {
			single, double := make([]float32, size/4), make([]float64, size/8)
			operand, operand64 := make([]float32, size/4), make([]float64, size/8)
			measure(b, "float32/"+op.name, size, 3*size,
				func() { foldFloats(op.op, single, single, operand, nan32) },
				func() { Into(op.op, single, single, operand) })
			measure(b, "float64/"+op.name, size, 3*size,
				func() { foldFloats(op.op, double, double, operand64, nan64) },
				func() { Into(op.op, double, double, operand64) })
		}
	}
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

// measure runs the loop and what users get, on size bytes that make so much
// traffic.
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
