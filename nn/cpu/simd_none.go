//go:build !(amd64 || arm64) || noasm || race

package cpu

// Without kernels, the loops do all the work.

func fastAdd([]float32, []float32) int                             { return 0 }
func fastScale([]float32, float32) int                             { return 0 }
func fastSum(_, _, _ []float32) int                                { return 0 }
func fastAxpy([]float32, float32, []float32) int                   { return 0 }
func fastRelu([]float32, []float32) int                            { return 0 }
func fastReluGrad([]float32, []float32, []float32, float32) int    { return 0 }
func fastMax([]float32, []float32) int                             { return 0 }
func fastDot(*[16]float32, []float32, []float32) int               { return 0 }
func fastSquares(_ *[16]float64, _, _ []float32, _, _ float32) int { return 0 }
func fastExp([]float32, float32) int                               { return 0 }
func fastGelu([]float32, []float32) int                            { return 0 }
func fastGeluGrad([]float32, []float32, []float32) int             { return 0 }

type updateKernel struct{}

func newUpdateKernel(*terms) updateKernel { return updateKernel{} }

func (updateKernel) adam(operands) int { return 0 }
func (updateKernel) sgd(operands) int  { return 0 }

type dropKernel struct{}

func newDropKernel(mask) dropKernel { return dropKernel{} }

func (dropKernel) fast(_, _ []float32, _ int) int { return 0 }
