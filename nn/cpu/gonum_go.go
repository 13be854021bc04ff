//go:build !amd64 || noasm || gccgo || safe

package cpu

// gonumAssembly reports whether gonum computes products in assembly rather
// than in Go loops.
const gonumAssembly = false
