package trainer

import (
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
