package nn

import (
	"fmt"
	"slices"
)

// A Classifier is a Model that assigns each row one of several classes: layers that end
// in Softmax, with cross-entropy as the loss. It counts CountRows, CountCorrect and
// CountLoss.
type Classifier struct{ crossEntropy }

var _ Model[Batch] = (*Classifier)(nil)

// NewClassifier builds a model on b from layers that end in Softmax. in is the shape of
// one row. The initial weights depend on seed and the parameter names.
func NewClassifier(b Backend, l Layer, in []int, classes int, seed uint64) (*Classifier, error) {
	if _, ok := last(l).(*Softmax); !ok {
		return nil, fmt.Errorf("nn: a classifier must end in Softmax, but this one ends in %T", last(l))
	}
	if classes < 1 {
		return nil, fmt.Errorf("nn: a classifier needs at least one class, got %d", classes)
	}
	builder := NewBuilder(seed)
	if _, err := l.Init(in, []int{classes}, builder); err != nil {
		return nil, err
	}
	c := &Classifier{crossEntropy{layer: l, in: slices.Clone(in), each: 1, classes: classes}}
	return c, c.build(b, builder)
}
