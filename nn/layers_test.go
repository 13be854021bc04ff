package nn_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/nntest"
)

func TestLayerGradients(t *testing.T) {
	block := func() nn.Layer {
		return nn.Chain(
			nn.Residual(nn.Chain(nn.EachPosition(&nn.LayerNorm{}), &nn.SelfAttention{Heads: 2, Causal: true})),
			nn.Residual(nn.EachPosition(nn.Chain(&nn.LayerNorm{}, &nn.Gelu{Out: 8, Dropout: .2}, &nn.Linear{Out: 4}))),
		)
	}
	for name, c := range map[string]struct {
		layer nn.Layer
		in    []int
	}{
		"gelu":             {&nn.Gelu{Out: 4}, []int{5}},
		"gelu and all":     {&nn.Gelu{Out: 6, Dropout: .3, Normalize: true}, []int{5}},
		"relu and all":     {&nn.Relu{Out: 6, Dropout: .3, Normalize: true}, []int{5}},
		"relu, norm":       {nn.Chain(&nn.Relu{Out: 6, Normalize: true}, &nn.Linear{Out: 2}), []int{5}},
		"maxout":           {&nn.Maxout{Out: 4}, []int{5}},
		"maxout and all":   {&nn.Maxout{Out: 6, Pieces: 2, Dropout: .3, Normalize: true}, []int{5}},
		"layer norm":       {&nn.LayerNorm{}, []int{7}},
		"positions":        {&nn.Positions{}, []int{3, 4}},
		"each position":    {nn.EachPosition(nn.Chain(&nn.Relu{Out: 5, Dropout: .3}, &nn.Linear{Out: 2})), []int{3, 4}},
		"attention":        {&nn.SelfAttention{Heads: 2}, []int{3, 4}},
		"causal attention": {&nn.SelfAttention{Heads: 3, Causal: true}, []int{4, 6}},
		"reshape":          {nn.Chain(&nn.Reshape{Shape: []int{3, 2}}, nn.EachPosition(&nn.Linear{Out: 3})), []int{6}},
		"flatten":          {nn.Chain(&nn.Flatten{}, &nn.Linear{Out: 3}), []int{2, 3}},
		"average":          {&nn.AvgPool2D{Size: 2}, []int{2, 4, 5}},
		"overlapping":      {&nn.AvgPool2D{Size: 3, Stride: 2, Padding: 1}, []int{2, 5, 5}},
		"whole average":    {&nn.AvgPool2D{}, []int{2, 3, 3}},
		"residual":         {nn.Residual(nn.Chain(&nn.Relu{Out: 4}, &nn.Linear{Out: 5})), []int{5}},
		"residual dropout": {nn.Residual(&nn.Dropout{Rate: .3}), []int{5}},
		"add":              {nn.Add(&nn.Dropout{Rate: .4}, &nn.Gelu{Out: 5}, nn.Residual(&nn.Linear{Out: 5})), []int{5}},
		"concatenate":      {nn.Concatenate(&nn.Dropout{Rate: .4}, &nn.Gelu{Out: 3}, &nn.Linear{Out: 1}), []int{5}},
		"channels":         {nn.Concatenate(&nn.Conv2D{Out: 2, Size: 3, Padding: 1}, &nn.Rectify{}), []int{2, 3, 4}},
		"clone":            {nn.Clone(3, func() nn.Layer { return &nn.Gelu{Out: 5} }), []int{5}},
		"batch norm":       {&nn.BatchNorm2D{}, []int{2, 3, 4}},
		"one channel":      {&nn.BatchNorm2D{}, []int{3, 4}},
		"residual block": {nn.Residual(nn.Chain(
			&nn.Conv2D{Out: 2, Size: 3, Padding: 1}, &nn.BatchNorm2D{}, &nn.Conv2D{Out: 2, Size: 3, Padding: 1},
		)), []int{2, 4, 4}},
		"transformer": {nn.Clone(2, block), []int{5, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			nntest.CheckGradients(t, cpu.New(cpu.Options{}), c.layer, c.in, 6)
		})
	}
	for name, c := range map[string]struct {
		layer nn.Layer
		in    []int
	}{
		"embed":         {&nn.Embed{Rows: 9, Out: 3}, []int{4}},
		"embed one":     {&nn.Embed{Rows: 9, Out: 3, Dropout: .4}, nil},
		"embed, linear": {nn.Chain(&nn.Embed{Rows: 9, Out: 4}, &nn.Positions{}, block(), nn.EachPosition(&nn.Linear{Out: 2})), []int{3}},
		"two tables":    {nn.Concatenate(&nn.Embed{Rows: 9, Out: 4}, &nn.Embed{Rows: 12, Out: 4}), []int{4}},
	} {
		t.Run(name, func(t *testing.T) {
			nntest.CheckIDGradients(t, cpu.New(cpu.Options{}), c.layer, c.in, 9)
		})
	}
	for name, layer := range map[string]nn.Layer{
		"linear":       &nn.Linear{Out: 4},
		"relu":         &nn.Relu{Out: 6},
		"relu dropout": &nn.Relu{Out: 6, Dropout: .3},
		"dropout":      &nn.Dropout{Rate: .4},
		"no dropout":   &nn.Dropout{},
		"chain": nn.Chain(
			&nn.Relu{Out: 7}, &nn.Dropout{Rate: .2}, nn.Chain(&nn.Linear{Out: 5}, &nn.Relu{Out: 3}),
		),
	} {
		t.Run(name, func(t *testing.T) {
			nntest.CheckGradients(t, cpu.New(cpu.Options{}), layer, []int{5}, 6)
		})
	}
}

// A layer with weights reads a row with several dimensions as one vector. The gradient has
// the shape of the input.
func TestRowsOfSeveralDimensions(t *testing.T) {
	nntest.CheckGradients(t, cpu.New(cpu.Options{}), nn.Chain(&nn.Dropout{Rate: .2}, &nn.Linear{Out: 3}), []int{2, 4}, 5)
}

func TestInitErrors(t *testing.T) {
	used := &nn.Linear{Out: 2}
	_, err := used.Init([]int{3}, nil, nn.NewBuilder(1))
	require.NoError(t, err)
	for _, c := range []struct {
		name    string
		layer   nn.Layer
		in, out []int
		want    string
	}{
		{"Out not set", nn.Chain(&nn.Relu{}, &nn.Linear{Out: 2}), []int{3}, []int{2}, "layers.0: Out is not set"},
		{"other width", nn.Chain(&nn.Relu{Out: 4}, &nn.Softmax{Out: 5}), []int{3}, []int{2}, "layers.1: Out is 5 but the model needs 2"},
		{"negative width", &nn.Linear{Out: -1}, []int{3}, nil, "model: Out must be at least 0, not -1"},
		{"output of two dimensions", &nn.Linear{}, []int{3}, []int{2, 2}, "[2 2]"},
		{"empty input", &nn.Linear{Out: 1}, []int{0}, nil, "shape [0]"},
		{"no input", &nn.Linear{Out: 1}, nil, nil, "shape []"},
		{"rate of 1", &nn.Relu{Out: 1, Dropout: 1}, []int{3}, nil, "dropout rate must be at least 0 and less than 1, not 1"},
		{"negative rate", &nn.Dropout{Rate: -.1}, []int{3}, nil, "dropout rate must be at least 0 and less than 1, not -0.1"},
		{"dropout keeps the shape", &nn.Dropout{}, []int{3}, []int{2}, "the model needs [2]"},
		{"empty chain", nn.Chain(), []int{3}, nil, "no layers"},
		{"layer used twice", used, []int{3}, nil, "already belongs"},
		{"nested", nn.Chain(nn.Chain(&nn.Linear{Out: 2}, &nn.Linear{})), []int{3}, nil, "layers.0.layers.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.layer.Init(c.in, c.out, nn.NewBuilder(1))
			require.ErrorContains(t, err, c.want)
		})
	}
}

// A chain infers the width of its last layer and names parameters by path.
func TestChainNamesAndShapes(t *testing.T) {
	b := nn.NewBuilder(1)
	out, err := nn.Chain(
		&nn.Relu{Out: 4}, nn.Chain(&nn.Linear{Out: 5}, &nn.Dropout{}), &nn.Softmax{},
	).Init([]int{3}, []int{2}, b)
	require.NoError(t, err)
	require.Equal(t, []int{2}, out)
	p, err := b.Build(cpu.New(cpu.Options{}))
	require.NoError(t, err)
	shapes := map[string][]int{}
	for _, q := range p.List {
		shapes[q.Name] = q.Shape
	}
	require.Equal(t, map[string][]int{
		"layers.0.W": {4, 3}, "layers.0.b": {4},
		"layers.1.layers.0.W": {5, 4}, "layers.1.layers.0.b": {5},
		"layers.2.W": {2, 5}, "layers.2.b": {2},
	}, shapes)
}

// Linear equals its definition for any shape.
func TestLinearIsAffine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(0, 9).Draw(t, "rows")
		nI := rapid.IntRange(1, 9).Draw(t, "nI")
		nO := rapid.IntRange(1, 9).Draw(t, "nO")
		be, b, l := cpu.New(cpu.Options{}), nn.NewBuilder(rapid.Uint64().Draw(t, "seed")), &nn.Linear{Out: nO}
		_, err := l.Init([]int{nI}, nil, b)
		require.NoError(t, err)
		p, err := b.Build(be)
		require.NoError(t, err)
		x := rapid.SliceOfN(rapid.Float32Range(-9, 9), rows*nI, rows*nI).Draw(t, "x")
		bias := p.List[1].Values.Float32s()
		copy(bias, rapid.SliceOfN(rapid.Float32Range(-9, 9), nO, nO).Draw(t, "b"))
		w := p.List[0].Values.Float32s()

		y, _ := l.Forward(&nn.Pass{Backend: be}, nn.Tensor{Shape: []int{rows, nI}, Data: nn.Host(x)})
		require.Equal(t, []int{rows, nO}, y.Shape)
		for i, got := range y.Data.Float32s() {
			want := float64(bias[i%nO])
			for k := range nI {
				want += float64(x[i/nO*nI+k]) * float64(w[i%nO*nI+k])
			}
			require.InDelta(t, want, got, 1e-4)
		}
	})
}

// Each layer has its own mask, and masks only while training.
func TestDropoutMasksDiffer(t *testing.T) {
	be, b := cpu.New(cpu.Options{}), nn.NewBuilder(1)
	first, second := &nn.Dropout{Rate: .5}, &nn.Dropout{Rate: .5}
	for _, l := range []nn.Layer{first, second} {
		_, err := l.Init([]int{64}, nil, b)
		require.NoError(t, err)
	}
	ones := make([]float32, 64)
	for i := range ones {
		ones[i] = 1
	}
	x := nn.Tensor{Shape: []int{1, 64}, Data: nn.Host(ones)}
	p := &nn.Pass{Backend: be, Train: true}
	y1, _ := first.Forward(p, x)
	y2, _ := second.Forward(p, x)
	require.NotEqual(t, y1.Data.Float32s(), y2.Data.Float32s())
	again, _ := first.Forward(p, x)
	require.Equal(t, y1.Data.Float32s(), again.Data.Float32s())
	p.Random.Step++
	next, _ := first.Forward(p, x)
	require.NotEqual(t, y1.Data.Float32s(), next.Data.Float32s())
	p.Train = false
	quiet, _ := first.Forward(p, x)
	require.Equal(t, ones, quiet.Data.Float32s())
}

// The gradient of the input is computed only if something before the layer has parameters.
func TestOnlyLaterLayersComputeInputGradients(t *testing.T) {
	be, b := cpu.New(cpu.Options{}), nn.NewBuilder(1)
	first, later := &nn.Linear{Out: 3}, &nn.Linear{Out: 2}
	_, err := first.Init([]int{3}, nil, b.Scope("first"))
	require.NoError(t, err)
	_, err = later.Init([]int{3}, nil, b.Scope("later"))
	require.NoError(t, err)
	_, err = b.Build(be)
	require.NoError(t, err)
	p := &nn.Pass{Backend: be, Train: true}
	x := nn.Tensor{Shape: []int{1, 3}, Data: nn.Host([]float32{1, 2, 3})}
	_, back := first.Forward(p, x)
	require.Equal(t, nn.Tensor{}, back(x))
	y, back := later.Forward(p, x)
	require.Equal(t, []int{1, 3}, back(y).Shape)
}

// A mean far from 0 does not cost accuracy.
func TestStandardizeFarFromZero(t *testing.T) {
	b := cpu.New(cpu.Options{})
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	for _, l := range []nn.Standardize{{Mean: .13, Deviation: .3}, {Mean: 1e4, Deviation: .5}, {Mean: -1e6, Deviation: 2}} {
		for _, far := range []float64{-1.5, 0, .5, 2} {
			x := nn.Host([]float32{float32(l.Mean + far*l.Deviation)})
			want := (float64(x.Float32s()[0]) - l.Mean) / l.Deviation
			y, _ := l.Forward(&nn.Pass{Backend: b}, nn.Tensor{Shape: []int{1, 1}, Data: x})
			require.InDelta(t, want, y.Data.Float32s()[0], 1e-6)
		}
	}
}
