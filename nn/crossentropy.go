package nn

import (
	"errors"
	"fmt"
)

// crossEntropy is a Model of layers that end in Softmax, with cross-entropy as the loss
// unless Loss is another. A row has one label, or one for each of its positions; the loss
// and all counts are sums over labels, and the weight is their number.
type crossEntropy struct {
	// Loss is what Learn minimises; nil is CrossEntropy. Set it before anything else.
	Loss ClassLoss

	backend Backend
	layer   Layer
	softmax *Softmax // at the end of layer
	params  *Params
	in      []int // shape of a row
	values  DType // of a row
	each    int   // labels of a row
	classes int

	loss   Buffer // 1 element, from the last Learn
	sums   Buffer // loss, correct and cross-entropy, from the last Score
	scored [3]float32
}

// build allocates the parameters that c.layer has declared.
func (c *crossEntropy) build(b Backend, declared *Builder) (err error) {
	end, _ := last(c.layer, declared)
	c.softmax = end.(*Softmax) // the constructors have checked the type
	c.backend, c.loss, c.sums = b, b.Alloc(1), b.Alloc(3)
	c.params, err = declared.Build(b)
	return err
}

// Params returns the parameters of the layers.
func (c *crossEntropy) Params() *Params { return c.params }

// Learn implements Model; weight is the number of labels, which may be 0.
func (c *crossEntropy) Learn(p *Pass, b Batch) (loss Buffer, weight int, err error) {
	if err := c.check(p, b); err != nil {
		return Buffer{}, 0, err
	}
	be := p.Backend
	be.Recycle()
	if f, ok := be.(Fuser); ok && isPlain(c.Loss) {
		pass := *p
		pass.bare = c.softmax
		logits, back := c.layer.Forward(&pass, b.X)
		f.SoftmaxLoss(c.loss, logits.Data, b.Labels)
		back(Tensor{Shape: logits.Shape, Data: logits.Data})
	} else {
		be.Zero(c.loss)
		probs, back := c.layer.Forward(p, b.X)
		d := Tensor{Shape: probs.Shape, Data: be.Temp(probs.Data.Len())}
		c.minimised().OfClasses(be, d.Data, c.loss, probs.Data, b.Labels)
		back(d)
	}
	p.final(0)
	return c.loss, b.Rows() * c.each, nil
}

// Score implements Model. It waits for the backend.
func (c *crossEntropy) Score(p *Pass, b Batch, counts Counts) error {
	if err := c.check(p, b); err != nil {
		return err
	}
	be := p.Backend
	be.Recycle()
	be.Zero(c.sums)
	quiet := *p
	quiet.Train = false
	probs, _ := c.layer.Forward(&quiet, b.X)
	c.minimised().OfClasses(be, Buffer{}, c.sums.Slice(0, 1), probs.Data, b.Labels)
	be.Correct(c.sums.Slice(1, 2), probs.Data, b.Labels)
	if !isPlain(c.Loss) {
		be.CrossEntropy(Buffer{}, c.sums.Slice(2, 3), probs.Data, b.Labels)
	}
	be.Read(c.scored[:], c.sums)
	counts[CountRows] += float64(b.Rows() * c.each)
	counts[CountLoss] += float64(c.scored[0])
	counts[CountCorrect] += float64(c.scored[1])
	if !isPlain(c.Loss) {
		counts[CountEntropy] += float64(c.scored[2])
	}
	return nil
}

// CountNames implements Model.
func (c *crossEntropy) CountNames() []string {
	names := []string{CountRows, CountLoss, CountCorrect}
	if !isPlain(c.Loss) {
		names = append(names, CountEntropy)
	}
	return names
}

// minimised returns the loss.
func (c *crossEntropy) minimised() ClassLoss {
	if c.Loss == nil {
		return CrossEntropy{}
	}
	return c.Loss
}

// check returns an error for a bad pass or batch, before any kernel sees it.
func (c *crossEntropy) check(p *Pass, b Batch) error {
	if err := checkRows(p, b.X, c.in, c.values); err != nil {
		return err
	}
	if b.Labels.DType() != Int32 || b.Labels.Len() != b.Rows()*c.each {
		each := "row"
		if c.each > 1 {
			each = "position"
		}
		return fmt.Errorf("nn: a batch of %d rows needs one int32 label per %s, got %d %v", b.Rows(), each, b.Labels.Len(), b.Labels.DType())
	}
	for i, l := range b.Labels.Int32s() {
		if l < 0 || int(l) >= c.classes {
			return fmt.Errorf("nn: row %d of the batch has label %d, but the model has classes 0 to %d", i/c.each, l, c.classes-1)
		}
	}
	return CheckInput(c.layer, b.X)
}

// checkRows returns an error for a bad pass, or for rows that a model of rows of shape in
// cannot take.
func checkRows(p *Pass, x Tensor, in []int, values DType) error {
	if p.Backend == nil {
		return errors.New("nn: the Pass has no Backend; set it to the one the model was built with")
	}
	if len(x.Shape) == 0 || !sameShape(x.Shape[1:], in) {
		return fmt.Errorf("nn: the batch has shape %v, but the model takes rows of shape %v", x.Shape, in)
	}
	if x.Data.DType() != values || x.Data.Len() != product(x.Shape) {
		return fmt.Errorf("nn: a batch of shape %v needs %d %v, but its Data holds %d %v", x.Shape, product(x.Shape), values, x.Data.Len(), x.Data.DType())
	}
	return nil
}
