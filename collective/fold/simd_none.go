//go:build !(amd64 || arm64) || noasm || race

package fold

// Instructions names the instruction set extensions used on this machine, such as "AVX2
// F16C". It is "" if only the plain loops run.
func Instructions() string { return "" }

// Without kernels, the loops do all the work.

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
