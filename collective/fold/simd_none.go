//go:build !amd64 || noasm || race

package fold

// Instructions names the extensions of the instruction set that folds use here,
// such as "AVX2 F16C"; "" where the plain loops do it all.
func Instructions() string { return "" }

// Without kernels nothing is done ahead of the loops.

func fast32(Op, []float32, []float32, []float32) int { return 0 }
func fast64(Op, []float64, []float64, []float64) int { return 0 }
func fastInt32(Op, []int32, []int32, []int32) int    { return 0 }
func fastInt64(Op, []int64, []int64, []int64) int    { return 0 }
func fastUint8(Op, []uint8, []uint8, []uint8) int    { return 0 }
func fastScale32([]float32, float32) int             { return 0 }
func fastScale64([]float64, float64) int             { return 0 }
func fastWiden([]float32, []uint16, Format) int      { return 0 }
func fastRound([]uint16, []float32, Format) int      { return 0 }

func fastSumAll([]float32, [][]float32, float32) int { return 0 }
func fastMeanInt32([]int32, [][]int32) int           { return 0 }
func fastMeanUint8([]uint8, [][]uint8) int           { return 0 }
