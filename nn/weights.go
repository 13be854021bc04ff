package nn

import (
	"fmt"
	"slices"
	"strings"

	"gorgonia.org/tensor"
)

// Weight returns a copy of a parameter's values, float32 and row-major. It fails if no
// parameter has that name or if the values are in device memory.
func (p *Params) Weight(name string) (*tensor.Dense, error) {
	values, q, err := p.host(name)
	if err != nil {
		return nil, err
	}
	return tensor.New(tensor.WithShape(q.Shape...), tensor.WithBacking(slices.Clone(values))), nil
}

// SetWeight sets a parameter's values to a copy of w, which must be float32 and have the
// parameter's shape. w may be a view or column-major. SetWeight fails if no parameter has
// that name or if the values are in device memory.
func (p *Params) SetWeight(name string, w *tensor.Dense) error {
	values, q, err := p.host(name)
	if err != nil {
		return err
	}
	if w == nil { // what checkpoint.File.Tensor returns for a name that the file lacks
		return fmt.Errorf("nn: cannot set %s: the tensor is nil", name)
	}
	if !sameShape(w.Shape(), q.Shape) {
		return fmt.Errorf("nn: cannot set %s of shape %v from a tensor of shape %v", name, q.Shape, []int(w.Shape()))
	}
	given, err := rowMajor(w)
	if err != nil {
		return fmt.Errorf("nn: cannot set %s: %w", name, err)
	}
	copy(values, given)
	return nil
}

// host returns a parameter and its values in host memory.
func (p *Params) host(name string) ([]float32, *Param, error) {
	q := p.Lookup(name)
	if q == nil {
		return nil, nil, fmt.Errorf("nn: no parameter %q; the model has %s", name, strings.Join(p.names(), ", "))
	}
	if device, _, ok := q.Values.Device(); ok {
		return nil, nil, fmt.Errorf("nn: %s is in the memory of device %d; read it with Backend.Read", name, device)
	}
	return q.Values.Float32s(), q, nil
}

func (p *Params) names() []string {
	names := make([]string, len(p.List))
	for i, q := range p.List {
		names[i] = q.Name
	}
	return names
}

// rowMajor returns the elements of w in row-major order; they may alias w.
func rowMajor(w *tensor.Dense) ([]float32, error) {
	if w.Dtype() != tensor.Float32 {
		return nil, fmt.Errorf("the tensor holds %v, but must hold float32", w.Dtype())
	}
	if data, ok := w.Data().([]float32); ok && !w.RequiresIterator() && !w.DataOrder().IsColMajor() {
		return data, nil
	}
	shape := w.Shape()
	values := make([]float32, product(shape))
	at := make([]int, len(shape))
	for i := range values {
		v, err := w.At(at...)
		if err != nil {
			return nil, fmt.Errorf("reading the tensor at %v: %w", at, err)
		}
		values[i] = v.(float32)
		for d := len(at) - 1; d >= 0; d-- {
			if at[d]++; at[d] < shape[d] {
				break
			}
			at[d] = 0
		}
	}
	return values, nil
}
