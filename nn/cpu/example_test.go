package cpu_test

import (
	"fmt"

	"github.com/ringtrain/ringtrain/nn/cpu"
)

// Multiply a matrix by the transpose of another.
func ExampleNew() {
	b := cpu.New(cpu.Options{})
	x, w, y := b.Alloc(4), b.Alloc(6), b.Temp(6)
	b.Copy(x, []float32{1, 2, 3, 4})         // 2×2
	b.Copy(w, []float32{1, 0, 0, 1, 1, 1})   // 3×2
	b.Gemm(y, x, w, 2, 3, 2, false, true, 0) // 2×3
	fmt.Println(y.Float32s())
	// Output: [1 2 3 3 4 7]
}
