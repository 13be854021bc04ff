package nn

import (
	"fmt"
	"slices"
)

// A Classifier is a Model that assigns each row one of several classes: layers that end
// in Softmax, with cross-entropy as the loss unless Loss is another. It counts CountRows,
// CountCorrect and CountLoss, and CountEntropy if the loss is another.
type Classifier struct{ crossEntropy }

var _ Model[Batch] = (*Classifier)(nil)

// NewClassifier builds a model on b from layers that end in Softmax. in is the shape of
// one row. The initial weights depend on seed and the parameter names.
func NewClassifier(b Backend, l Layer, in []int, classes int, seed uint64) (*Classifier, error) {
	return BuildClassifier(b, l, in, classes, NewBuilder(seed))
}

// BuildClassifier is NewClassifier with a new Builder, which may know more of the input.
func BuildClassifier(b Backend, l Layer, in []int, classes int, builder *Builder) (*Classifier, error) {
	if err := DeclareClassifier(l, in, classes, builder); err != nil {
		return nil, err
	}
	c := &Classifier{crossEntropy{layer: l, in: slices.Clone(in), each: 1, classes: classes}}
	return c, c.build(b, builder)
}

// DeclareClassifier declares the parameters of a Classifier, and finds what NewClassifier
// would refuse. Layers that do not end in Softmax are a *LayerError about the last one.
func DeclareClassifier(l Layer, in []int, classes int, b *Builder) error {
	if end, scope := last(l, b); !isSoftmax(end) {
		return scope.errorf("the last layer is %T, but a classifier must end in Softmax; add one", end)
	}
	if classes < 1 {
		return fmt.Errorf("nn: a classifier needs at least one class, got %d", classes)
	}
	if _, err := l.Init(in, []int{classes}, b); err != nil {
		return err
	}
	return checkNumbers(l, in)
}
