// Package nntest tests implementations of nn's contracts. [TestBackend] compares a
// backend with float64 loops; [CheckGradients] and [CheckModelGradients] compare backward
// passes with finite differences.
package nntest
