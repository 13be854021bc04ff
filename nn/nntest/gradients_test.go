package nntest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
)

// wrong is a layer y = w⊙x whose Backprop can be made wrong.
type wrong struct {
	w            *nn.Param
	scaleW       float32 // factor of the gradient of w; 1 is right
	scaleX       float32 // factor of the gradient of x; 1 is right
	promisedMore bool    // Init promises a larger shape than Forward returns
}

func (l *wrong) Init(in, _ []int, b *nn.Builder) ([]int, error) {
	l.w = b.Param("w", in, nn.Uniform(1, 2))
	if l.promisedMore {
		return []int{in[0] + 1}, nil
	}
	return in, nil
}

func (l *wrong) Forward(p *nn.Pass, x nn.Tensor) (nn.Tensor, nn.Backprop) {
	y := nn.Tensor{Shape: x.Shape, Data: p.Backend.Temp(x.Data.Len())}
	w, xs, ys := l.w.Values.Float32s(), x.Data.Float32s(), y.Data.Float32s()
	for i := range ys {
		ys[i] = xs[i] * w[i%len(w)]
	}
	return y, func(dy nn.Tensor) nn.Tensor {
		dx := p.Backend.Temp(len(xs))
		for i, d := range dy.Data.Float32s() {
			l.w.Grads.Float32s()[i%len(w)] += l.scaleW * d * xs[i]
			dx.Float32s()[i] = l.scaleX * d * w[i%len(w)]
		}
		return nn.Tensor{Shape: x.Shape, Data: dx}
	}
}

func TestCheckerFindsWrongGradients(t *testing.T) {
	for _, c := range []struct {
		name  string
		layer *wrong
		want  string
	}{
		{"right", &wrong{scaleW: 1, scaleX: 1}, ""},
		{"wrong in a parameter", &wrong{scaleW: 1.05, scaleX: 1}, "layer.w["},
		{"none in a parameter", &wrong{scaleX: 1}, "layer.w["},
		{"wrong in the input", &wrong{scaleW: 1, scaleX: .95}, "input["},
		{"wrong shape", &wrong{scaleW: 1, scaleX: 1, promisedMore: true}, "promised"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := layerGradients(cpu.New(cpu.Options{}), c.layer, []int{5}, 4)
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}

// halved is a model whose gradients are half of the right ones.
type halved struct{ nn.Model[nn.Batch] }

func (m halved) Learn(p *nn.Pass, b nn.Batch) (nn.Buffer, int, error) {
	loss, weight, err := m.Model.Learn(p, b)
	p.Backend.Scale(m.Params().Grads, .5)
	return loss, weight, err
}

func TestModelCheckerFindsWrongGradients(t *testing.T) {
	b := cpu.New(cpu.Options{})
	m, err := nn.NewClassifier(b, &nn.Softmax{InitW: nn.GlorotUniform}, []int{3}, 2, 1)
	require.NoError(t, err)
	batch := nn.Batch{
		X:      nn.Tensor{Shape: []int{2, 3}, Data: nn.Host([]float32{1, 2, 3, -1, 0, 1})},
		Labels: nn.HostInts([]int32{0, 1}),
	}
	p := &nn.Pass{Backend: b, Train: true}
	require.NoError(t, modelGradients(m, p, batch))
	require.ErrorContains(t, modelGradients(halved{m}, p, batch), "W[")
	batch.Labels = nn.HostInts([]int32{0, 7})
	require.ErrorContains(t, modelGradients(m, p, batch), "label 7")
}

// forgetful is a model that does not say which rows of its table it touches.
type forgetful struct{ nn.Model[nn.Batch] }

func (m forgetful) Learn(p *nn.Pass, b nn.Batch) (nn.Buffer, int, error) {
	loss, weight, err := m.Model.Learn(p, b)
	m.Params().Untouch()
	return loss, weight, err
}

func TestModelCheckerFindsUntouchedRows(t *testing.T) {
	b := cpu.New(cpu.Options{})
	m, err := nn.NewPositionClassifier(b, nn.Chain(&nn.Embed{Rows: 70, Out: 2}, nn.EachPosition(&nn.Softmax{InitW: nn.GlorotUniform})), nn.Sequence{Positions: 3, IDs: 70, Classes: 2}, 1)
	require.NoError(t, err)
	batch := nn.Batch{X: nn.Tensor{Shape: []int{1, 3}, Data: nn.HostInts([]int32{1, 69, 1})}, Labels: nn.HostInts([]int32{1, 0, 1})}
	p := &nn.Pass{Backend: b, Train: true}
	require.NoError(t, modelGradients(m, p, batch))
	require.ErrorContains(t, modelGradients(forgetful{m}, p, batch), "E: row 1 has a gradient, but is not in Touched")
}
