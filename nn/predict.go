package nn

import (
	"context"
	"fmt"

	"gorgonia.org/tensor"
)

// Predict returns the class probabilities (rows, classes) for the rows of x, a float32
// tensor whose first dimension is rows. It applies no dropout, recycles the backend's
// temporary memory, and waits for the result.
func (c *Classifier) Predict(ctx context.Context, x *tensor.Dense) (*tensor.Dense, error) {
	shape := []int(x.Shape())
	if len(shape) == 0 || !sameShape(shape[1:], c.in) {
		return nil, fmt.Errorf("nn: cannot predict from shape %v; the model takes rows of shape %v", shape, c.in)
	}
	values, err := rowMajor(x)
	if err != nil {
		return nil, fmt.Errorf("nn: cannot predict: %w", err)
	}
	probs := make([]float32, shape[0]*c.classes)
	err = c.backend.Do(ctx, func() error {
		c.backend.Recycle()
		in := Tensor{Shape: shape, Data: c.backend.Temp(len(values))}
		c.backend.Copy(in.Data, values)
		y, _ := c.layer.Forward(&Pass{Backend: c.backend}, in)
		c.backend.Read(probs, y.Data)
		return c.backend.Sync(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("nn: predict: %w", err)
	}
	return tensor.New(tensor.WithShape(shape[0], c.classes), tensor.WithBacking(probs)), nil
}
