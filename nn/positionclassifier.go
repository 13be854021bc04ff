package nn

import (
	"context"
	"fmt"
)

// Sequence describes the rows of a [PositionClassifier].
type Sequence struct {
	Positions int // of a row
	IDs       int // each position has an id from 0 to IDs-1
	Classes   int // and a class from 0 to Classes-1
	// Causal says that a position's class depends only on it and those before it, as in a
	// language model. Layers that would also see those after it are refused.
	Causal bool
}

// Declare runs Init of layers for a [PositionClassifier], and returns the Builder that has
// their parameters. The initial weights depend on seed and the parameter names.
func (s Sequence) Declare(l Layer, seed uint64) (*Builder, error) {
	if min(s.Positions, s.IDs, s.Classes) < 1 {
		return nil, fmt.Errorf("nn: a model of sequences needs at least one position, id and class, got %+v", s)
	}
	b := NewBuilder(seed)
	if end, scope := last(l, b); !isSoftmax(end) {
		return nil, scope.errorf("the last layer is %T, but a model of sequences must end in EachPosition of Softmax; add one", end)
	}
	if err := checkIDs(l, b); err != nil {
		return nil, err
	}
	b.TakesIDs(s.IDs)
	b.plans.causal = s.Causal
	if _, err := l.Init([]int{s.Positions}, []int{s.Positions, s.Classes}, b); err != nil {
		return nil, err
	}
	for _, q := range b.Declared() {
		if q.Momentum > 0 {
			return nil, fmt.Errorf("nn: %s is a running statistic, a mean over rows, but a model of sequences has means over positions; use LayerNorm in place of BatchNorm", q.Name)
		}
	}
	return b, nil
}

// A PositionClassifier is a Model that assigns each position of a row one of several
// classes. A row is int32 ids, one for each position, and has as many labels. The layers
// end in [EachPosition] of Softmax, and the loss is as in a [Classifier]. The weight and the
// counts are of positions instead of rows.
type PositionClassifier struct {
	crossEntropy
	ids Buffer // of Predict
}

var (
	_ Model[Batch] = (*PositionClassifier)(nil)
	_ Weigher      = (*PositionClassifier)(nil)
)

// NewPositionClassifier builds a model on b. See [Sequence.Declare].
func NewPositionClassifier(b Backend, l Layer, s Sequence, seed uint64) (*PositionClassifier, error) {
	declared, err := s.Declare(l, seed)
	if err != nil {
		return nil, err
	}
	c := &PositionClassifier{crossEntropy: crossEntropy{layer: l, in: []int{s.Positions}, values: Int32, each: s.Positions, classes: s.Classes}}
	return c, c.build(b, declared)
}

// RowWeight implements Weigher: the number of positions.
func (c *PositionClassifier) RowWeight() int { return c.each }

// Predict returns the class probabilities (rows, positions, classes) for the ids of rows.
// It applies no dropout, recycles the backend's temporary memory, and waits for the
// result.
func (c *PositionClassifier) Predict(ctx context.Context, ids []int32) ([]float32, error) {
	rows := len(ids) / c.each
	if len(ids) != rows*c.each {
		return nil, fmt.Errorf("nn: cannot predict from %d ids; the model takes rows of %d", len(ids), c.each)
	}
	if err := CheckInput(c.layer, Tensor{Shape: []int{rows, c.each}, Data: HostInts(ids)}); err != nil {
		return nil, err
	}
	probs := make([]float32, len(ids)*c.classes)
	err := c.backend.Do(ctx, func() error {
		c.backend.Recycle()
		if c.ids.Len() < len(ids) {
			c.ids = c.backend.AllocInts(max(len(ids), 2*c.ids.Len())) // a GPU never frees the earlier one
		}
		x := Tensor{Shape: []int{rows, c.each}, Data: c.ids.Slice(0, len(ids))}
		c.backend.CopyInts(x.Data, ids)
		y, _ := c.layer.Forward(&Pass{Backend: c.backend}, x)
		c.backend.Read(probs, y.Data)
		return c.backend.Sync(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("nn: predict: %w", err)
	}
	return probs, nil
}
