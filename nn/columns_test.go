package nn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/nntest"
)

// spans are a number, a column of three categories, and a number with its indicator.
var spans = []nn.ColumnSpan{{Width: 1}, {Width: 3, Categories: true}, {Width: 2}}

func columnBuilder() *nn.Builder {
	b := nn.NewBuilder(3)
	b.TakesColumns(spans)
	return b
}

// columnRows are rows of spans. The category of the third row is unknown.
func columnRows() nn.Tensor {
	return nn.Tensor{Shape: []int{4, 6}, Data: nn.Host([]float32{
		.5, 0, 1, 0, 7, 0,
		-1, 1, 0, 0, 0, 1,
		2, 0, 0, 0, -3, 0,
		3, 0, 1, 0, .25, 0,
	})}
}

// forwardOf returns what a layer makes of columnRows, and its parameters.
func forwardOf(t *testing.T, l nn.Layer) (nn.Tensor, *nn.Params) {
	b := cpu.New(cpu.Options{})
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	builder := columnBuilder()
	_, err := l.Init([]int{6}, nil, builder)
	require.NoError(t, err)
	p, err := builder.Build(b)
	require.NoError(t, err)
	y, _ := l.Forward(&nn.Pass{Backend: b}, columnRows())
	return y, p
}

// Columns are copied in the order of the list.
func TestColumns(t *testing.T) {
	y, _ := forwardOf(t, &nn.Columns{Columns: []int{2, 0}})
	require.Equal(t, []int{4, 3}, y.Shape)
	require.Equal(t, []float32{7, 0, .5, 0, 1, -1, -3, 0, 2, .25, 0, 3}, y.Data.Float32s())
}

// A category becomes its row of the table, and an unknown one zeros.
func TestEmbedColumn(t *testing.T) {
	column := 1
	y, p := forwardOf(t, &nn.Embed{Out: 2, Column: &column})
	require.Equal(t, []int{3, 2}, p.List[0].Shape)
	e := p.List[0].Values.Float32s()
	require.Equal(t, []int{4, 2}, y.Shape)
	require.Equal(t, []float32{e[2], e[3], e[0], e[1], 0, 0, e[2], e[3]}, y.Data.Float32s())
}

func TestColumnGradients(t *testing.T) {
	column := 1
	for _, dropout := range []float32{0, .3} {
		b := cpu.New(cpu.Options{})
		l := nn.Chain(nn.Concatenate(&nn.Embed{Out: 2, Column: &column, Dropout: dropout}, &nn.Columns{Columns: []int{0, 2}}), &nn.Gelu{Out: 4}, &nn.Softmax{InitW: nn.GlorotUniform})
		m, err := nn.BuildClassifier(b, l, []int{6}, 3, columnBuilder())
		require.NoError(t, err)
		pass := &nn.Pass{Backend: b, Train: true, Random: nn.Stream{Seed: 1}}
		nntest.CheckModelGradients(t, m, pass, nn.Batch{X: columnRows(), Labels: nn.HostInts([]int32{0, 2, 1, 1})})
		r, err := nn.BuildRegressor(b, nn.Chain(&nn.Embed{Out: 2, Column: &column, Dropout: dropout}, &nn.Linear{}), []int{6}, 1, columnBuilder())
		require.NoError(t, err)
		nntest.CheckModelGradients(t, r, pass, nn.Targets{X: columnRows(), Y: nn.Tensor{Shape: []int{4, 1}, Data: nn.Host([]float32{1, 2, 3, 4})}})
		require.NoError(t, b.Close())
	}
}

// A residual whose layer begins with the model's own input has no gradient to add, although
// a layer before it has parameters.
func TestResidualOfColumns(t *testing.T) {
	column := 1
	b := cpu.New(cpu.Options{})
	defer func() { require.NoError(t, b.Close()) }()
	all := nn.Chain(&nn.Columns{Columns: []int{0, 1, 2}}, &nn.Gelu{Out: 6})
	l := nn.Chain(nn.Concatenate(&nn.Embed{Out: 2, Column: &column}, nn.Residual(all)), &nn.Softmax{InitW: nn.GlorotUniform})
	m, err := nn.BuildClassifier(b, l, []int{6}, 3, columnBuilder())
	require.NoError(t, err)
	nntest.CheckModelGradients(t, m, &nn.Pass{Backend: b, Train: true}, nn.Batch{X: columnRows(), Labels: nn.HostInts([]int32{0, 2, 1, 1})})
}

func TestColumnMistakes(t *testing.T) {
	number := func(n int) *int { return &n }
	for want, l := range map[string]nn.Layer{
		"Column 0 has numbers, but Embed takes categories":        &nn.Embed{Out: 2, Column: number(0)},
		"Column must be from 0 to 2, not 3":                       &nn.Embed{Out: 2, Column: number(3)},
		"Column must be from 0 to 2, not -1":                      &nn.Columns{Columns: []int{-1}},
		"Rows must be 3, not 4, because column 1":                 &nn.Embed{Out: 2, Rows: 4, Column: number(1)},
		"Columns is empty":                                        &nn.Columns{},
		"nn: layers.1: Column refers to a column of a batch, but": nn.Chain(&nn.Columns{Columns: []int{1}}, &nn.Columns{Columns: []int{0}}),
	} {
		_, err := l.Init([]int{6}, nil, columnBuilder())
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(*nn.LayerError))
	}
	_, err := (&nn.Columns{Columns: []int{0}}).Init([]int{5}, nil, columnBuilder())
	require.ErrorContains(t, err, "rows of input have shape [5], but their columns have 6 elements")
	_, err = (&nn.Embed{Out: 2, Column: number(0)}).Init([]int{6}, nil, nn.NewBuilder(1))
	require.ErrorContains(t, err, "Column is 0, but rows of input have no columns; leave it out")
}
