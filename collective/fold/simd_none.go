//go:build !amd64 || noasm || race

package fold

// Instructions names the extensions of the instruction set that folds use here,
// such as "AVX2 F16C"; "" where the plain loops do it all.
func Instructions() string { return "" }

// Without kernels nothing is done ahead of the loops.

func fast32(Op, []float32, []float32, []float32) int { return 0 }
func fast64(Op, []float64, []float64, []float64) int { return 0 }
func fastScale32([]float32, float32) int             { return 0 }
func fastScale64([]float64, float64) int             { return 0 }
func fastWiden([]float32, []uint16, Format) int      { return 0 }
func fastRound([]uint16, []float32, Format) int      { return 0 }
