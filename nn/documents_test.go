package nn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/nntest"
)

// documents makes the rows of its input the tokens of documents.
type documents struct {
	nn.Layer
	lengths []int
}

func (l documents) Init(in, out []int, b *nn.Builder) ([]int, error) {
	b.TakesDocuments()
	return l.Layer.Init(in, out, b)
}

func (l documents) Forward(p *nn.Pass, x nn.Tensor) (nn.Tensor, nn.Backprop) {
	x.Lengths = l.lengths
	y, back := l.Layer.Forward(p, x)
	return y, func(dy nn.Tensor) nn.Tensor {
		dy.Lengths = l.lengths
		return back(dy)
	}
}

func (l documents) total() int {
	n := 0
	for _, tokens := range l.lengths {
		n += tokens
	}
	return n
}

// run returns l's result for rows of the given width that count up from 1, in the shape (rows,
// width).
func (l documents) run(t *testing.T, width int) nn.Tensor {
	t.Helper()
	built(t, l, []int{width}, nil)
	x := make([]float32, l.total()*width)
	for i := range x {
		x[i] = float32(i + 1)
	}
	be := cpu.New(cpu.Options{})
	used := be.Temp(1000).Float32s() // temporary memory does not begin as zeros
	for i := range used {
		used[i] = -1
	}
	be.Recycle()
	y, _ := l.Forward(&nn.Pass{Backend: be}, nn.Tensor{Shape: []int{l.total(), width}, Data: nn.Host(x)})
	return y
}

func TestExpandWindow(t *testing.T) {
	for _, c := range []struct {
		size, rows int
		want       []float32
	}{
		{1, 3, []float32{
			0, 0, 1, 2, 3, 4,
			1, 2, 3, 4, 5, 6,
			3, 4, 5, 6, 0, 0,
		}},
		{2, 2, []float32{
			0, 0, 0, 0, 1, 2, 3, 4, 0, 0,
			0, 0, 1, 2, 3, 4, 0, 0, 0, 0,
		}},
		{3, 1, []float32{0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0}},
		{1, 0, []float32{}},
	} {
		y := documents{&nn.ExpandWindow{Size: c.size}, []int{c.rows}}.run(t, 2)
		require.Equal(t, c.want, y.Data.Float32s())
		require.Equal(t, []int{c.rows, 2 * (2*c.size + 1)}, y.Shape)
	}
}

// The layer sees rows of zeros between documents. Its result does not have them.
func TestPadded(t *testing.T) {
	y := documents{nn.Padded(&nn.ExpandWindow{Size: 1}, 2), []int{2, 0, 1}}.run(t, 1)
	require.Equal(t, []float32{0, 1, 2, 1, 2, 0, 0, 3, 0}, y.Data.Float32s())
	require.Equal(t, []int{3, 3}, y.Shape)
	require.Equal(t, []int{2, 0, 1}, y.Lengths)

	seen := &spy{}
	documents{nn.Padded(seen, 2), []int{2, 1}}.run(t, 1)
	require.Equal(t, []float32{0, 0, 1, 2, 0, 0, 3, 0, 0}, seen.x.Data.Float32s())
	require.Equal(t, []int{4, 5}, seen.x.Lengths)
}

// spy is a layer that keeps its input.
type spy struct{ x nn.Tensor }

func (s *spy) Init(in, _ []int, _ *nn.Builder) ([]int, error) { return in, nil }

func (s *spy) Forward(_ *nn.Pass, x nn.Tensor) (nn.Tensor, nn.Backprop) {
	s.x = x
	return x, func(dy nn.Tensor) nn.Tensor { return dy }
}

func TestDocumentGradients(t *testing.T) {
	convolution := func() nn.Layer {
		return nn.Residual(nn.Chain(&nn.ExpandWindow{Size: 1}, &nn.Maxout{Out: 5, Normalize: true, Dropout: .2}))
	}
	for name, l := range map[string]nn.Layer{
		"window":           &nn.ExpandWindow{Size: 1},
		"wide window":      &nn.ExpandWindow{Size: 4},
		"padded window":    nn.Padded(&nn.ExpandWindow{Size: 2}, 1),
		"padded layer":     nn.Padded(&nn.Linear{Out: 3}, 2),
		"padded identity":  nn.Padded(&nn.Dropout{}, 1),
		"window encoder":   nn.Padded(nn.Clone(2, convolution), 2),
		"window of window": nn.Chain(&nn.ExpandWindow{Size: 1}, &nn.ExpandWindow{Size: 1}),
	} {
		t.Run(name, func(t *testing.T) {
			d := documents{l, []int{3, 0, 4}}
			nntest.CheckGradients(t, cpu.New(cpu.Options{}), d, []int{5}, d.total())
		})
	}
}

// Without parameters before it, a layer of documents has no gradient to return.
func TestFirstDocumentLayersReturnNoGradient(t *testing.T) {
	for _, l := range []nn.Layer{&nn.ExpandWindow{Size: 1}, nn.Padded(&nn.ExpandWindow{Size: 1}, 1)} {
		d := documents{l, []int{2}}
		built(t, d, []int{1}, nil)
		y, back := d.Forward(&nn.Pass{Backend: cpu.New(cpu.Options{})}, nn.Tensor{Shape: []int{2, 1}, Data: nn.Host([]float32{1, 2})})
		require.Equal(t, nn.Tensor{}, back(y))
	}
}

func TestDocumentMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		layer nn.Layer
		in    []int
		want  string
	}{
		"independent rows": {nn.Chain(&nn.ExpandWindow{Size: 1}), []int{3}, "layers.0: ExpandWindow lets rows see their neighbours"},
		"padded rows":      {nn.Padded(&nn.Linear{Out: 1}, 1), []int{3}, "Padded lets rows see their neighbours"},
		"no vectors":       {documents{&nn.ExpandWindow{Size: 1}, nil}, []int{3, 4}, "rows of input have shape [3 4], but ExpandWindow takes vectors"},
		"no size":          {documents{&nn.ExpandWindow{}, nil}, []int{3}, "Size must be at least 1, not 0"},
		"no pad":           {documents{nn.Padded(&nn.Linear{Out: 1}, 0), nil}, []int{3}, "pad must be at least 1, not 0"},
		"inner layer":      {documents{nn.Padded(&nn.Linear{}, 1), nil}, []int{3}, "layers.0: Out is not set"},
		"ids":              {documents{nn.Padded(&nn.Embed{Rows: 3, Out: 2}, 1), nil}, []int{3}, "layers.0: Embed follows another layer"},
	} {
		_, err := c.layer.Init(c.in, nil, nn.NewBuilder(1))
		require.ErrorContains(t, err, c.want, name)
	}
}
