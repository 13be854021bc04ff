//go:build !amd64 || noasm || race

package cpu

// Only AVX-512 has kernels for rows and for Maxout.

var hasAVX512 bool

func fastWeights([]float32, int, int, maskedRows) int       { return 0 }
func fastScores(_, _ []float32, _, _, _ int, _ float32) int { return 0 }
func fastNorm(_, _, _, _, _ []float32, _ float32) int       { return 0 }
func fastNormGrad(_, _, _ []float32, _ normGrads) int       { return 0 }
func fastMaxout(_, _ []float32, _ int) int                  { return 0 }
func fastMaxoutGrad(_, _, _ []float32, _ int) int           { return 0 }
