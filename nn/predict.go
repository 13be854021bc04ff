package nn

import (
	"context"
	"errors"
	"fmt"

	"gorgonia.org/tensor"
)

// Predict returns the class probabilities (rows, classes) for the rows of x, a float32
// tensor with at least one row, its first dimension. It applies no dropout, recycles the
// backend's temporary memory, and waits for the result.
func (c *Classifier) Predict(ctx context.Context, x *tensor.Dense) (*tensor.Dense, error) {
	return inference{c.backend, c.layer, c.in, c.classes}.predict(ctx, x)
}

// Predict returns the outputs (rows, outputs) for the rows of x, and otherwise does what
// Classifier.Predict does.
func (r *Regressor) Predict(ctx context.Context, x *tensor.Dense) (*tensor.Dense, error) {
	return inference{r.backend, r.layer, r.in, r.outputs}.predict(ctx, x)
}

// An inference computes width numbers from each row of shape in.
type inference struct {
	backend Backend
	layer   Layer
	in      []int
	width   int
}

func (f inference) predict(ctx context.Context, x *tensor.Dense) (*tensor.Dense, error) {
	if x == nil {
		return nil, errors.New("nn: cannot predict: the tensor is nil")
	}
	shape := []int(x.Shape())
	if len(shape) == 0 || !sameShape(shape[1:], f.in) {
		return nil, fmt.Errorf("nn: cannot predict from shape %v; the model takes rows of shape %v", shape, f.in)
	}
	if shape[0] == 0 { // tensor.Dense cannot represent the result
		return nil, errors.New("nn: cannot predict: the tensor has no rows")
	}
	values, err := rowMajor(x)
	if err != nil {
		return nil, fmt.Errorf("nn: cannot predict: %w", err)
	}
	b, out := f.backend, make([]float32, shape[0]*f.width)
	err = b.Do(ctx, func() error {
		b.Recycle()
		rows := Tensor{Shape: shape, Data: b.Temp(len(values))}
		b.Copy(rows.Data, values)
		y, _ := f.layer.Forward(&Pass{Backend: b}, rows)
		b.Read(out, y.Data)
		return b.Sync(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("nn: predict: %w", err)
	}
	return tensor.New(tensor.WithShape(shape[0], f.width), tensor.WithBacking(out)), nil
}
