//go:build amd64 && !noasm && !gccgo && !safe

package cpu

// gonumAssembly says that gonum sums products by its assembly, whose order is
// another than that of its Go loops. The build tags are gonum's.
const gonumAssembly = true
