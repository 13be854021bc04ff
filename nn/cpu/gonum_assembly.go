//go:build amd64 && !noasm && !gccgo && !safe

package cpu

// gonumAssembly reports whether gonum computes products in assembly, which sums in a
// different order than its Go loops. The build tags are gonum's.
const gonumAssembly = true
