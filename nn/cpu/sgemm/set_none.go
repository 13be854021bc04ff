//go:build (!amd64 && !arm64) || noasm

package sgemm

// available returns no kernels: plain Go does all the work.
func available() []*kernels { return nil }
