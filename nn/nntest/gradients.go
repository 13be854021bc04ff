package nntest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

// CheckGradients compares the Backprop of l with central differences of Forward in
// training mode, for the gradients of its parameters and of its input. It uses random
// rows of shape in. l must not be initialised yet and must know its number of outputs.
// Its Backprop must take the gradient of its output; nn.Softmax's does not, so check that
// layer as part of a model.
func CheckGradients(t *testing.T, b nn.Backend, l nn.Layer, in []int, rows int) {
	t.Helper()
	require.NoError(t, layerGradients(b, l, in, rows))
}

// CheckIDGradients is CheckGradients for a layer whose rows of shape in are int32 ids from 0
// to ids-1, which have no gradient.
func CheckIDGradients(t *testing.T, b nn.Backend, l nn.Layer, in []int, ids int) {
	t.Helper()
	const rows = 5
	n, r := rows, rand.New(rand.NewPCG(9, 1))
	for _, d := range in {
		n *= d
	}
	x := make([]int32, n)
	for i := range x {
		x[i] = r.Int32N(int32(ids))
	}
	require.NoError(t, nn.CheckInput(l, nn.Tensor{Shape: append([]int{rows}, in...), Data: nn.HostInts(x)}))
	at := b.AllocInts(n)
	b.CopyInts(at, x)
	require.NoError(t, layerGradients(b, &constant{layer: l, ids: at}, in, rows))
}

// constant is a layer that ignores its input in favour of ids, so that its gradient is 0.
type constant struct {
	layer nn.Layer
	ids   nn.Buffer
}

func (c *constant) Init(in, out []int, b *nn.Builder) ([]int, error) { return c.layer.Init(in, out, b) }

func (c *constant) Forward(p *nn.Pass, x nn.Tensor) (nn.Tensor, nn.Backprop) {
	y, back := c.layer.Forward(p, nn.Tensor{Shape: x.Shape, Data: c.ids})
	return y, func(dy nn.Tensor) nn.Tensor {
		back(dy)
		dx := nn.Tensor{Shape: x.Shape, Data: p.Backend.Temp(x.Data.Len())}
		p.Backend.Zero(dx.Data)
		return dx
	}
}

// CheckModelGradients compares the parameter gradients that m.Learn computes with central
// differences of its loss. p.Random fixes the dropout masks. Values are restored
// afterwards; Grads are not.
func CheckModelGradients[B any](t *testing.T, m nn.Model[B], p *nn.Pass, batch B) {
	t.Helper()
	require.NoError(t, modelGradients(m, p, batch))
}

// layerGradients declares the input as a parameter, so that its gradient is computed and
// checked too.
func layerGradients(b nn.Backend, l nn.Layer, in []int, rows int) error {
	builder := nn.NewBuilder(3)
	input := builder.Param("input", append([]int{rows}, in...), nn.Uniform(-1, 1))
	out, err := l.Init(in, nil, builder.Scope("layer"))
	if err != nil {
		return err
	}
	params, err := builder.Build(b)
	if err != nil {
		return err
	}
	jitter(b, params)
	pass := &nn.Pass{Backend: b, Train: true, Random: nn.Stream{Seed: 4, Step: 5}}
	x := nn.Tensor{Shape: input.Shape, Data: input.Values}
	weights := randomWeights(rows, out)
	y := make([]float32, len(weights))

	loss := func() float64 {
		b.Recycle()
		result, _ := l.Forward(pass, x)
		b.Read(y, result.Data)
		return dot(weights, y)
	}
	learn := func() error {
		b.Recycle()
		result, back := l.Forward(pass, x)
		if result.Data.Len() != len(weights) {
			return fmt.Errorf("Init promised rows of shape %v, but Forward returned shape %v", out, result.Shape)
		}
		dy := nn.Tensor{Shape: result.Shape, Data: b.Temp(len(weights))}
		b.Copy(dy.Data, weights)
		dx := back(dy)
		if dx.Data.Len() != input.Values.Len() {
			return fmt.Errorf("the gradient of the input has %d elements, but the input has %d", dx.Data.Len(), input.Values.Len())
		}
		b.Axpy(input.Grads, 1, dx.Data)
		return nil
	}
	return compare(b, params, learn, loss)
}

// jitter changes every value a little: with a bias of exactly 0, rows of zeros would lie
// exactly at the kink of relu.
func jitter(b nn.Backend, params *nn.Params) {
	v := make([]float32, params.Values.Len())
	b.Read(v, params.Values)
	r := rand.New(rand.NewPCG(7, 8))
	for i := range v {
		v[i] += r.Float32()*.4 - .2
	}
	b.Copy(params.Values, v)
}

// modelGradients checks a model by its summed loss.
func modelGradients[B any](m nn.Model[B], p *nn.Pass, batch B) error {
	var failed error
	loss := func() float64 {
		sum, _, err := m.Learn(p, batch)
		if err != nil {
			failed = err
			return 0
		}
		var v [1]float32
		p.Backend.Read(v[:], sum)
		return float64(v[0])
	}
	learn := func() error {
		_, _, err := m.Learn(p, batch)
		return err
	}
	if err := compare(p.Backend, m.Params(), learn, loss); err != nil {
		return err
	}
	return failed
}

// Settings of the comparison. In float32, a difference has about three
// significant digits.
const (
	stepSize  = 1.0 / 128 // of the finite difference
	tolerance = .01       // relative to the largest gradient of the parameter
	checked   = 40        // elements of each parameter, evenly spaced
	maxKinks  = .2        // fraction of them that may lie at a kink of relu
)

// compare runs learn once and checks the gradients of every parameter against
// differences of loss, and its Touched against its gradients.
func compare(b nn.Backend, params *nn.Params, learn func() error, loss func() float64) error {
	b.Zero(params.Grads)
	params.Untouch()
	if err := learn(); err != nil {
		return err
	}
	grads := make([]float32, params.Grads.Len())
	b.Read(grads, params.Grads)
	for _, q := range params.List {
		if q.Momentum > 0 { // a running statistic has no gradient
			continue
		}
		own := grads[q.Offset : q.Offset+q.Grads.Len()]
		if err := checkTouched(q, own); err != nil { // loss may touch more rows
			return err
		}
		if err := compareParam(b, q, own, loss); err != nil {
			return err
		}
	}
	return nil
}

// checkTouched returns an error if a row outside Touched has a gradient.
func checkTouched(q *nn.Param, grads []float32) error {
	if q.Touched == nil {
		return nil
	}
	width, rest := q.Shape[1], slices.Clone(grads)
	for row := range q.Touched.All() {
		clear(rest[row*width : (row+1)*width])
	}
	if i := slices.IndexFunc(rest, func(g float32) bool { return g != 0 }); i >= 0 {
		return fmt.Errorf("%s: row %d has a gradient, but is not in Touched", q.Name, i/width)
	}
	return nil
}

func compareParam(b nn.Backend, q *nn.Param, grads []float32, loss func() float64) error {
	largest := 0.
	for _, g := range grads {
		largest = max(largest, math.Abs(float64(g)))
	}
	base := loss()
	allowed := tolerance*largest + 0x1p-20*math.Abs(base)/stepSize + 1e-4
	tried, kinks := 0, 0
	for i := 0; i < len(grads); i += (len(grads) + checked - 1) / checked {
		tried++
		left, right := slopes(b, q, i, base, loss)
		d := (left + right) / 2
		switch g := float64(grads[i]); {
		case math.Abs(d-g) <= allowed:
		case math.Abs(right-left) > allowed: // different slopes left and right: a kink, not a wrong gradient
			kinks++
		default:
			return fmt.Errorf("%s[%d]: the gradient is %v, but differences give %v", q.Name, i, g, d)
		}
	}
	if float64(kinks) > maxKinks*float64(tried)+1 {
		return fmt.Errorf("%s: at %d of %d elements the gradient is wrong or the loss is not smooth", q.Name, kinks, tried)
	}
	return nil
}

// slopes returns the one-sided difference quotients of loss at element i of q. base is
// the loss there.
func slopes(b nn.Backend, q *nn.Param, i int, base float64, loss func() float64) (left, right float64) {
	element := q.Values.Slice(i, i+1)
	var v [1]float32
	b.Read(v[:], element)
	move := func(x float32) float64 {
		b.Copy(element, []float32{x})
		return (loss() - base) / (float64(x) - float64(v[0]))
	}
	left, right = move(v[0]-stepSize), move(v[0]+stepSize)
	b.Copy(element, v[:])
	return left, right
}

// randomWeights returns a weight for each output; the weighted sum of outputs is
// the loss.
func randomWeights(rows int, out []int) []float32 {
	n := rows
	for _, d := range out {
		n *= d
	}
	r := rand.New(rand.NewPCG(5, 6))
	v := make([]float32, n)
	for i := range v {
		v[i] = r.Float32()*2 - 1
	}
	return v
}

func dot(a, b []float32) float64 {
	sum := 0.
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
