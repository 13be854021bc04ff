package keyed

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// A parameter is a value that gradients update, on a backend.
type parameter struct {
	params *nn.Params // one parameter
	state  *optim.State
	host   []float32 // its elements, on their way to or from the backend
}

// newParameter returns the parameter with the elements in data, or with one that is never
// used if there are none: a parameter of nn has at least one element.
func newParameter(ctx context.Context, b nn.Backend, o optim.Optimizer, data []byte) (*parameter, error) {
	p := &parameter{host: make([]float32, len(data)/elementSize)}
	err := b.Do(ctx, func() (err error) {
		builder := nn.NewBuilder(0)
		builder.Param("value", []int{max(len(p.host), 1)}, nn.Zeros)
		if p.params, err = builder.Build(b); err == nil {
			p.state = optim.NewState(b, p.params, o)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("keyed: %w", err)
	}
	return p, p.set(ctx, b, data)
}

// set sets the elements to those in data. It leaves the state of the optimizer.
func (p *parameter) set(ctx context.Context, b nn.Backend, data []byte) error {
	return p.do(ctx, b, func() {
		decode(p.host, data)
		b.Copy(p.params.Values.Slice(0, len(p.host)), p.host)
	})
}

// update takes the step of the optimizer and stores the elements in data.
func (p *parameter) update(ctx context.Context, b nn.Backend, o optim.Optimizer, gradient, data []byte) error {
	err := p.do(ctx, b, func() {
		decode(p.host, gradient)
		b.Copy(p.params.Grads.Slice(0, len(p.host)), p.host)
		optim.Step(o, b, p.params, p.state)
		b.Read(p.host, p.params.Values.Slice(0, len(p.host)))
	})
	if err == nil {
		encode(data, p.host)
	}
	return err
}

// do calls f where the backend wants it, and waits for what f has queued, also if ctx ends.
func (p *parameter) do(ctx context.Context, b nn.Backend, f func()) error {
	err := b.Do(ctx, func() error {
		f()
		return b.Sync(context.WithoutCancel(ctx))
	})
	if err != nil {
		return fmt.Errorf("keyed: %w", err)
	}
	return nil
}

// elementSize is the size of a float32 in bytes.
const elementSize = 4

// finite reports whether all elements are finite.
func finite(data []byte) bool {
	const exponent = 0xff << 23
	for ; len(data) > 0; data = data[elementSize:] {
		if binary.LittleEndian.Uint32(data)&exponent == exponent {
			return false
		}
	}
	return true
}

// decode sets dst to the elements in data.
func decode(dst []float32, data []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[elementSize*i:]))
	}
}

// encode stores the elements of src in data.
func encode(data []byte, src []float32) {
	for i, x := range src {
		binary.LittleEndian.PutUint32(data[elementSize*i:], math.Float32bits(x))
	}
}
