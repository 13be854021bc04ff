package trainer

import (
	"math"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
)

// Operand is a Buffer of float32 as a vector for collective calls, in whichever
// memory it lies. The Group's engine must reach that memory.
func Operand(b nn.Buffer) collective.Vector {
	if device, addr, ok := b.Device(); ok {
		return collective.OnDevice(device, addr, b.Len(), collective.Float32)
	}
	return collective.Of(b.Float32s())
}

// onDevice reports whether a Buffer is in device memory.
func onDevice(b nn.Buffer) bool {
	_, _, ok := b.Device()
	return ok
}

// hostCopy is the elements of a Buffer where the host can read them: themselves,
// or a copy of what is in device memory, for which it waits.
func hostCopy(b nn.Backend, v nn.Buffer) []float32 {
	if !onDevice(v) {
		return v.Float32s()
	}
	values := make([]float32, v.Len())
	b.Read(values, v)
	return values
}

// A probe looks for numbers that are not finite in an arena of device memory,
// without copying it: the squared norms of its blocks tell.
type probe struct {
	backend nn.Backend
	hyper   nn.Buffer // zeroes: no L2 regularisation
	norms   nn.Buffer
	found   []float32
}

func newProbe(b nn.Backend, elements int) *probe {
	blocks := nn.Blocks(elements)
	return &probe{backend: b, hyper: b.Alloc(nn.HyperLen), norms: b.Alloc(blocks), found: make([]float32, blocks)}
}

// finite reports whether all elements are finite and their squares add up. It
// waits for the backend.
func (p *probe) finite(v nn.Buffer) bool {
	p.backend.SquaredNorm(p.norms, v, v, p.hyper)
	p.backend.Read(p.found, p.norms)
	for _, x := range p.found {
		if x64 := float64(x); math.IsNaN(x64) || math.IsInf(x64, 0) {
			return false
		}
	}
	return true
}
