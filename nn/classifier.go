package nn

import (
	"errors"
	"fmt"
	"slices"
)

// A Classifier is a Model that assigns each row one of several classes: layers that end
// in Softmax, with cross-entropy as the loss. It counts CountRows, CountCorrect and
// CountLoss.
type Classifier struct {
	backend Backend
	layer   Layer
	params  *Params
	in      []int
	classes int
	loss    Buffer // 1 element, from the last Learn
	sums    Buffer // loss and correct, from the last Score
	scored  [2]float32
}

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
	params, err := builder.Build(b)
	if err != nil {
		return nil, err
	}
	return &Classifier{
		backend: b, layer: l, params: params, in: slices.Clone(in), classes: classes,
		loss: b.Alloc(1), sums: b.Alloc(2),
	}, nil
}

// Params returns the parameters of the layers.
func (c *Classifier) Params() *Params { return c.params }

// Learn implements Model; weight is the number of rows, which may be 0.
func (c *Classifier) Learn(p *Pass, b Batch) (loss Buffer, weight int, err error) {
	if err := c.check(p, b); err != nil {
		return Buffer{}, 0, err
	}
	be := p.Backend
	be.Recycle()
	if f, ok := be.(Fuser); ok {
		pass := *p
		pass.bare = last(c.layer).(*Softmax) // NewClassifier has checked the type
		logits, back := c.layer.Forward(&pass, b.X)
		f.SoftmaxLoss(c.loss, logits.Data, b.Labels)
		back(Tensor{Shape: logits.Shape, Data: logits.Data})
	} else {
		be.Zero(c.loss)
		probs, back := c.layer.Forward(p, b.X)
		d := Tensor{Shape: probs.Shape, Data: be.Temp(probs.Data.Len())}
		be.CrossEntropy(d.Data, c.loss, probs.Data, b.Labels)
		back(d)
	}
	p.final(0)
	return c.loss, b.Rows(), nil
}

// Score implements Model. It waits for the backend.
func (c *Classifier) Score(p *Pass, b Batch, counts Counts) error {
	if err := c.check(p, b); err != nil {
		return err
	}
	be := p.Backend
	be.Recycle()
	be.Zero(c.sums)
	quiet := *p
	quiet.Train = false
	probs, _ := c.layer.Forward(&quiet, b.X)
	be.CrossEntropy(Buffer{}, c.sums.Slice(0, 1), probs.Data, b.Labels)
	be.Correct(c.sums.Slice(1, 2), probs.Data, b.Labels)
	be.Read(c.scored[:], c.sums)
	counts[CountRows] += float64(b.Rows())
	counts[CountLoss] += float64(c.scored[0])
	counts[CountCorrect] += float64(c.scored[1])
	return nil
}

// CountNames implements Model.
func (c *Classifier) CountNames() []string { return []string{CountRows, CountLoss, CountCorrect} }

// check returns an error for a bad pass or batch, before any kernel sees it.
func (c *Classifier) check(p *Pass, b Batch) error {
	if p.Backend == nil {
		return errors.New("nn: the Pass has no Backend; set it to the one the model was built with")
	}
	x := b.X
	if len(x.Shape) == 0 || !sameShape(x.Shape[1:], c.in) {
		return fmt.Errorf("nn: the batch has shape %v, but the model takes rows of shape %v", x.Shape, c.in)
	}
	if x.Data.DType() != Float32 || x.Data.Len() != product(x.Shape) {
		return fmt.Errorf("nn: a batch of shape %v needs %d float32, but its Data holds %d %v", x.Shape, product(x.Shape), x.Data.Len(), x.Data.DType())
	}
	if b.Labels.DType() != Int32 || b.Labels.Len() != b.Rows() {
		return fmt.Errorf("nn: a batch of %d rows needs one int32 label per row, got %d %v", b.Rows(), b.Labels.Len(), b.Labels.DType())
	}
	for i, l := range b.Labels.Int32s() {
		if l < 0 || int(l) >= c.classes {
			return fmt.Errorf("nn: row %d of the batch has label %d, but the model has classes 0 to %d", i, l, c.classes-1)
		}
	}
	return nil
}
