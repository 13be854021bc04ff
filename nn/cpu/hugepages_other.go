//go:build !linux

package cpu

func preferHugePages([]float32) {}
