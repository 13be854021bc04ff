//go:build !amd64 || noasm || gccgo || safe

package cpu

// gonumAssembly says that gonum sums products by its Go loops.
const gonumAssembly = false
