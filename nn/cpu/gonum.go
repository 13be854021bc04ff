package cpu

import "runtime"

// gonumName names gonum's products by everything their bits depend on: the
// architecture, gonum's assembly or its Go loops, and whether the compiler fuses
// multiplications with additions.
func gonumName() string { return nameGonum(runtime.GOARCH, gonumAssembly, fuses()) }

func nameGonum(arch string, assembly, fused bool) string {
	name := "gonum " + arch
	if assembly {
		name += " assembly"
	} else {
		name += " Go"
	}
	if fused {
		name += " FMA"
	}
	return name
}

// fuses reports whether the compiler turns x*y + z into one operation that rounds once.
// It does on arm64, and on amd64 with GOAMD64=v3.
func fuses() bool { return multiplyAdd(1+0x1p-12, 1+0x1p-12, -1-0x1p-11) != 0 }

//go:noinline
func multiplyAdd(x, y, z float32) float32 { return x*y + z } // fused on purpose
