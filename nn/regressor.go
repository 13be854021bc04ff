package nn

import (
	"fmt"
	"slices"
)

// Targets holds rows with the values to predict from each: the input of a Regressor. The
// model does not change it, and reads it only during the call that receives it.
type Targets struct {
	X Tensor
	Y Tensor // (rows, outputs)
}

// Rows returns the number of rows of X.
func (b Targets) Rows() int { return b.X.Rows() }

// Names in Counts of a Regressor, from which the coefficient of determination follows.
const (
	CountTargets = "targets"         // sum of the values to predict
	CountSquares = "squared_targets" // sum of their squares
	CountErrors  = "squared_errors"  // sum of squared errors, if the loss is another
)

// A Regressor is a Model that predicts numbers: layers with half the squared error as the
// loss, unless Loss is another, summed over the outputs of a row. The gradient of the
// squared error is the difference between prediction and target. So a step equals that of
// Thinc's L2Distance and of scikit-learn's MLPRegressor, whose loss is the mean over the
// outputs of a row instead of their sum. It counts CountRows, CountLoss, CountTargets and CountSquares, and CountErrors if the loss
// is another. For exact sums, targets should have a mean near 0.
type Regressor struct {
	// Loss is what Learn minimises; nil is SquaredError. Set it before anything else.
	Loss ValueLoss

	backend Backend
	layer   Layer
	params  *Params
	in      []int
	outputs int
	loss    Buffer // 1 element, from the last Learn
	sums    Buffer // loss, half the sums of squared targets and of squared errors, and sums of targets, from the last Score
	scored  []float32
}

var _ Model[Targets] = (*Regressor)(nil)

// NewRegressor builds a model on b from layers that must not end in Softmax. in is the
// shape of one row, and outputs is how many numbers to predict from it. The initial
// weights depend on seed and the parameter names.
func NewRegressor(b Backend, l Layer, in []int, outputs int, seed uint64) (*Regressor, error) {
	return BuildRegressor(b, l, in, outputs, NewBuilder(seed))
}

// BuildRegressor is NewRegressor with a new Builder, which may know more of the input.
func BuildRegressor(b Backend, l Layer, in []int, outputs int, builder *Builder) (*Regressor, error) {
	if err := DeclareRegressor(l, in, outputs, builder); err != nil {
		return nil, err
	}
	params, err := builder.Build(b)
	if err != nil {
		return nil, err
	}
	r := &Regressor{backend: b, layer: l, params: params, in: slices.Clone(in), outputs: outputs, loss: b.Alloc(1), sums: b.Alloc(3 + outputs)}
	r.scored = make([]float32, r.sums.Len())
	return r, nil
}

// DeclareRegressor declares the parameters of the layers of a Regressor. It returns an
// error if they cannot be one.
func DeclareRegressor(l Layer, in []int, outputs int, b *Builder) error {
	if end, scope := last(l, b); isSoftmax(end) {
		return scope.errorf("a regressor must not end in Softmax, which predicts classes; end the network in Linear")
	}
	if outputs < 1 {
		return fmt.Errorf("nn: a regressor needs at least one output, got %d", outputs)
	}
	out, err := l.Init(in, []int{outputs}, b)
	if err != nil {
		return err
	}
	if product(out) != outputs {
		return b.errorf("a regressor of %d outputs needs layers with that many, but these return rows of shape %v", outputs, out)
	}
	return checkNumbers(l, in)
}

// Params returns the parameters of the layers.
func (r *Regressor) Params() *Params { return r.params }

// Learn implements Model; weight is the number of rows, which may be 0.
func (r *Regressor) Learn(p *Pass, b Targets) (loss Buffer, weight int, err error) {
	if err := r.check(p, b); err != nil {
		return Buffer{}, 0, err
	}
	be := p.Backend
	be.Recycle()
	be.Zero(r.loss)
	y, back := r.layer.Forward(p, b.X)
	d := Tensor{Shape: y.Shape, Data: be.Temp(y.Data.Len())}
	r.minimised().OfValues(be, d.Data, r.loss, y.Data, b.Y.Data)
	back(d)
	p.final(0)
	return r.loss, b.Rows(), nil
}

// Score implements Model. It waits for the backend.
func (r *Regressor) Score(p *Pass, b Targets, counts Counts) error {
	if err := r.check(p, b); err != nil {
		return err
	}
	be := p.Backend
	be.Recycle()
	be.Zero(r.sums)
	quiet := *p
	quiet.Train = false
	y, _ := r.layer.Forward(&quiet, b.X)
	r.minimised().OfValues(be, Buffer{}, r.sums.Slice(0, 1), y.Data, b.Y.Data)
	if !isSquared(r.Loss) {
		be.SquaredError(Buffer{}, r.sums.Slice(2, 3), y.Data, b.Y.Data)
	}
	zero := be.Temp(b.Y.Data.Len())
	be.Zero(zero)
	be.SquaredError(Buffer{}, r.sums.Slice(1, 2), zero, b.Y.Data)
	be.SumRows(r.sums.Slice(3, 3+r.outputs), b.Y.Data)
	be.Read(r.scored, r.sums)
	counts[CountRows] += float64(b.Rows())
	counts[CountLoss] += float64(r.scored[0])
	counts[CountSquares] += 2 * float64(r.scored[1])
	if !isSquared(r.Loss) {
		counts[CountErrors] += 2 * float64(r.scored[2])
	}
	for _, sum := range r.scored[3:] {
		counts[CountTargets] += float64(sum)
	}
	return nil
}

// CountNames implements Model.
func (r *Regressor) CountNames() []string {
	names := []string{CountRows, CountLoss, CountTargets, CountSquares}
	if !isSquared(r.Loss) {
		names = append(names, CountErrors)
	}
	return names
}

// minimised returns the loss.
func (r *Regressor) minimised() ValueLoss {
	if r.Loss == nil {
		return SquaredError{}
	}
	return r.Loss
}

// check returns an error for a bad pass or batch, before any kernel sees it.
func (r *Regressor) check(p *Pass, b Targets) error {
	if err := checkRows(p, b.X, r.in, Float32); err != nil {
		return err
	}
	if y := b.Y; len(y.Shape) != 2 || y.Shape[0] != b.Rows() || y.Shape[1] != r.outputs || y.Data.DType() != Float32 || y.Data.Len() != b.Rows()*r.outputs {
		return fmt.Errorf("nn: a batch of %d rows needs float32 targets of shape [%d %d], got shape %v of %d %v", b.Rows(), b.Rows(), r.outputs, y.Shape, y.Data.Len(), y.Data.DType())
	}
	return nil
}
