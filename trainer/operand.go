package trainer

import (
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
)

// Operand returns a Buffer of float32 as a vector for collective calls, in host or
// device memory. The Group's engine must reach that memory.
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

// hostCopy returns the elements of a Buffer in host memory: the Buffer's own, or a
// copy of device memory, which it waits for.
func hostCopy(b nn.Backend, v nn.Buffer) []float32 {
	if !onDevice(v) {
		return v.Float32s()
	}
	values := make([]float32, v.Len())
	b.Read(values, v)
	return values
}
