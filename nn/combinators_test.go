package nn_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
)

// built initialises a layer and returns its parameters and its output shape.
func built(t *testing.T, l nn.Layer, in, out []int) (*nn.Params, []int) {
	t.Helper()
	b := nn.NewBuilder(1)
	made, err := l.Init(in, out, b)
	require.NoError(t, err)
	p, err := b.Build(cpu.New(cpu.Options{}))
	require.NoError(t, err)
	return p, made
}

// Every layer names its parameters by path, with Thinc's shapes, and returns the shape of
// its rows.
func TestLayerNamesAndShapes(t *testing.T) {
	type shapes = map[string][]int
	gelu := func() nn.Layer { return &nn.Gelu{Out: 4} }
	for name, c := range map[string]struct {
		layer    nn.Layer
		in, made []int
		params   shapes
	}{
		"gelu":      {&nn.Gelu{Out: 4, Normalize: true}, []int{3}, []int{4}, shapes{"W": {4, 3}, "b": {4}, "norm.G": {4}, "norm.b": {4}}},
		"relu":      {&nn.Relu{Out: 4, Normalize: true}, []int{3}, []int{4}, shapes{"W": {4, 3}, "b": {4}, "norm.G": {4}, "norm.b": {4}}},
		"maxout":    {&nn.Maxout{Out: 4}, []int{5}, []int{4}, shapes{"W": {4, 3, 5}, "b": {4, 3}}},
		"norm":      {&nn.LayerNorm{}, []int{2, 3}, []int{2, 3}, shapes{"G": {6}, "b": {6}}},
		"embed":     {&nn.Embed{Rows: 7, Out: 2}, []int{5}, []int{5, 2}, shapes{"E": {7, 2}}},
		"positions": {&nn.Positions{}, []int{5, 2}, []int{5, 2}, shapes{"E": {5, 2}}},
		"attention": {&nn.SelfAttention{Heads: 2}, []int{5, 4}, []int{5, 4}, shapes{"qkv.W": {12, 4}, "qkv.b": {12}, "out.W": {4, 4}, "out.b": {4}}},
		"batch norm": {&nn.BatchNorm2D{}, []int{3, 2, 2}, []int{3, 2, 2}, shapes{
			"G": {3}, "b": {3}, "running_mean": {3}, "running_var": {3},
		}},
		"reshape":       {&nn.Reshape{Shape: []int{3, 2}}, []int{6}, []int{3, 2}, shapes{}},
		"all inputs":    {&nn.Maxout{Out: 4, In: 5}, []int{5}, []int{4}, shapes{"W": {4, 3, 5}, "b": {4, 3}}},
		"flatten":       {&nn.Flatten{}, []int{2, 3}, []int{6}, shapes{}},
		"average":       {&nn.AvgPool2D{}, []int{2, 3, 3}, []int{2, 1, 1}, shapes{}},
		"residual":      {nn.Residual(gelu()), []int{4}, []int{4}, shapes{"layers.0.W": {4, 4}, "layers.0.b": {4}}},
		"clone":         {nn.Clone(2, gelu), []int{3}, []int{4}, shapes{"layers.0.W": {4, 3}, "layers.0.b": {4}, "layers.1.W": {4, 4}, "layers.1.b": {4}}},
		"add":           {nn.Add(gelu(), &nn.Linear{Out: 4}), []int{3}, []int{4}, shapes{"layers.0.W": {4, 3}, "layers.0.b": {4}, "layers.1.W": {4, 3}, "layers.1.b": {4}}},
		"concatenate":   {nn.Concatenate(gelu(), &nn.Linear{Out: 2}), []int{3}, []int{6}, shapes{"layers.0.W": {4, 3}, "layers.0.b": {4}, "layers.1.W": {2, 3}, "layers.1.b": {2}}},
		"each position": {nn.EachPosition(gelu()), []int{5, 3}, []int{5, 4}, shapes{"layers.0.W": {4, 3}, "layers.0.b": {4}}},
	} {
		t.Run(name, func(t *testing.T) {
			p, made := built(t, c.layer, c.in, nil)
			require.Equal(t, c.made, made)
			got := shapes{}
			for _, q := range p.List {
				got[q.Name] = q.Shape
			}
			require.Equal(t, c.params, got)
		})
	}
}

func TestCombinatorErrors(t *testing.T) {
	embed := &nn.Embed{Rows: 3, Out: 2}
	for name, c := range map[string]struct {
		layer   nn.Layer
		in, out []int
		want    string
	}{
		"residual":            {nn.Chain(nn.Residual(&nn.Linear{Out: 4})), []int{3}, nil, "layers.0.layers.0: Out is 4 but the model needs 3"},
		"residual of images":  {nn.Residual(&nn.Conv2D{Out: 2, Size: 3}), []int{2, 5, 5}, nil, "layers.0: the layer returns rows of shape [2 3 3], but the model needs [2 5 5]"},
		"add":                 {nn.Add(&nn.Linear{Out: 4}, &nn.Linear{Out: 5}), []int{3}, nil, "layers.1 returns rows of shape [5], but layers.0 returns [4]"},
		"add nothing":         {nn.Add(), []int{3}, nil, "model: there are no layers in it"},
		"concatenate nothing": {nn.Concatenate(), []int{3}, nil, "model: there are no layers in it"},
		"concatenate":         {nn.Concatenate(&nn.Rectify{}, &nn.Flatten{}), []int{3, 2}, nil, "layers.1 returns rows of shape [6], but layers.0 returns [3 2]"},
		"concatenate to":      {nn.Concatenate(&nn.Linear{Out: 4}, &nn.Linear{Out: 5}), []int{3}, []int{8}, "rows of shape [9], but the model needs [8]"},
		"clone nothing":       {nn.Clone(0, func() nn.Layer { return &nn.Rectify{} }), []int{3}, nil, "no layers"},
		"no positions":        {nn.EachPosition(&nn.Linear{Out: 4}), []int{3}, nil, "rows of input have shape [3], but EachPosition"},
		"other positions":     {nn.EachPosition(&nn.Linear{Out: 4}), []int{3, 2}, []int{4, 4}, "keeps the 3 positions"},
		"heads":               {&nn.SelfAttention{Heads: 3}, []int{5, 4}, nil, "Heads must be at least 1 and divide the width, not 3; rows of shape [5 4] have width 4"},
		"attention of rows":   {&nn.SelfAttention{}, []int{5}, nil, "shape [5], but must be positions (T, width)"},
		"positions of images": {&nn.Positions{}, []int{1, 5, 5}, nil, "shape [1 5 5], but must be positions (T, width)"},
		"no table":            {&nn.Embed{Out: 4}, []int{5}, nil, "Rows must be the number of ids, at least 1, not 0"},
		"no width":            {&nn.Embed{Rows: 4}, []int{5}, nil, "Out must be at least 1, not 0"},
		"embed to":            {&nn.Embed{Rows: 4, Out: 2}, []int{5}, []int{5, 3}, "rows of shape [5 2], but the model needs [5 3]"},
		"late embed":          {nn.Chain(&nn.Dropout{}, nn.Concatenate(&nn.Embed{Rows: 4, Out: 2})), []int{5}, nil, "layers.1.layers.0: Embed follows another layer"},
		"embed twice":         {nn.Add(embed, embed), []int{5}, nil, "already belongs"},
		"nothing in a chain":  {nn.Chain(&nn.Rectify{}, nil), []int{3}, nil, "layers.1: the layer is nil"},
		"nothing to add":      {nn.Residual(nil), []int{3}, nil, "layers.0: the layer is nil"},
		"nothing in a sum":    {nn.Add(&nn.Rectify{}, nil), []int{3}, nil, "layers.1: the layer is nil"},
		"pieces":              {&nn.Maxout{Out: 4, Pieces: -1}, []int{5}, nil, "Pieces must be at least 0, not -1"},
		"batch norm of rows":  {&nn.BatchNorm2D{}, []int{5}, nil, "shape [5], but must be images"},
		"momentum":            {&nn.BatchNorm2D{Momentum: 2}, []int{1, 5, 5}, nil, "Momentum must be from 0 to 1, not 2"},
		"eps":                 {&nn.LayerNorm{Eps: -1}, []int{5}, nil, "Eps must be at least 0, not -1"},
		"eps of batch norm":   {&nn.BatchNorm2D{Eps: -1}, []int{1, 5, 5}, nil, "Eps must be at least 0, not -1"},
		"oblong":              {&nn.AvgPool2D{}, []int{1, 4, 5}, nil, "[1 4 5] are not square"},
		"reshape":             {&nn.Reshape{Shape: []int{2, 3}}, []int{7}, nil, "shape [7], which is 7 elements; Shape is [2 3]"},
		"reshape to nothing":  {&nn.Reshape{Shape: []int{0}}, []int{7}, nil, "every dimension must be at least 1"},
		"reshape to too much": {&nn.Reshape{Shape: []int{1 << 32, 1 << 32}}, []int{0}, nil, "Shape is [4294967296 4294967296]"},
		"inputs":              {&nn.Gelu{Out: 2, In: 4}, []int{2, 3}, nil, "In is 4, but rows of input have shape [2 3], which is 6 elements"},
		"negative inputs":     {&nn.Linear{Out: 2, In: -1}, []int{3}, nil, "In must be at least 0, not -1"},
		"inputs of a norm":    {&nn.LayerNorm{In: 4}, []int{3}, nil, "In is 4, but rows of input have shape [3]"},
		"softmax in a chain":  {nn.Chain(nn.Chain(&nn.Softmax{Out: 3}), &nn.Linear{Out: 2}), []int{3}, nil, "layers.0.layers.0: Softmax must be the last layer"},
		"softmax in a sum":    {nn.Add(&nn.Softmax{Out: 3}), []int{3}, nil, "layers.0: Softmax must be the last layer"},
		"residual softmax":    {nn.Residual(nn.EachPosition(&nn.Softmax{})), []int{3, 2}, nil, "layers.0.layers.0: Softmax must be the last layer"},
		"dropout":             {&nn.Gelu{Out: 2, Dropout: 1}, []int{3}, nil, "the dropout rate must be at least 0 and less than 1, not 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.layer.Init(c.in, c.out, nn.NewBuilder(1))
			require.ErrorContains(t, err, c.want)
			require.ErrorAs(t, err, new(*nn.LayerError))
		})
	}
}

// A layer that keeps something of its Init serves one place, also without parameters: the
// second place would change the shapes or the random numbers of the first.
func TestLayersServeOnePlace(t *testing.T) {
	for name, c := range map[string]struct {
		layer nn.Layer
		in    []int
	}{
		"dropout": {&nn.Dropout{Rate: .5}, []int{4}}, "max pool": {&nn.MaxPool2D{Size: 1}, []int{1, 4, 4}}, "average pool": {&nn.AvgPool2D{Size: 1}, []int{1, 4, 4}},
		"images": {&nn.Images{}, []int{4}}, "each position": {nn.EachPosition(&nn.Rectify{}), []int{3, 2}},
	} {
		b := nn.NewBuilder(1)
		out, err := c.layer.Init(c.in, nil, b)
		require.NoError(t, err, name)
		_, err = c.layer.Init(out, nil, b)
		require.ErrorContains(t, err, "already belongs to a model", name)
	}
}

// Ids outside the table are an error that says where, through all combinators.
func TestCheckInput(t *testing.T) {
	embed := func(rows int) nn.Layer { return &nn.Embed{Rows: rows, Out: 2} }
	x := nn.Tensor{Shape: []int{2, 3}, Data: nn.HostInts([]int32{0, 1, 2, 3, 4, 2})}
	for name, l := range map[string]nn.Layer{
		"embed": embed(4), "chain": nn.Chain(nn.Chain(embed(4)), &nn.Positions{}), "concatenate": nn.Concatenate(embed(9), embed(4)),
		"add": nn.Add(embed(4), embed(5)), "residual": nn.Residual(embed(4)), "each position": nn.EachPosition(embed(4)),
	} {
		require.EqualError(t, nn.CheckInput(l, x), "nn: row 1 of the batch has id 4 at position 1, but the table has rows 0 to 3", name)
	}
	require.NoError(t, nn.CheckInput(embed(5), x))
	require.NoError(t, nn.CheckInput(&nn.Linear{Out: 2}, x))
	require.NoError(t, nn.CheckInput(nn.Chain(), x))
	x.Data.Int32s()[0] = -1
	require.ErrorContains(t, nn.CheckInput(embed(5), x), "row 0 of the batch has id -1 at position 0")
	floats := nn.Tensor{Shape: []int{1}, Data: nn.Host([]float32{1})}
	require.ErrorContains(t, nn.CheckInput(embed(5), floats), "int32 ids, but the rows hold float32")
}

// A layer within EachPosition computes what it computes on plain rows. Its dropout masks
// are functions of the row of the batch, as everywhere.
func TestEachPosition(t *testing.T) {
	const rows, positions, width = 4, 3, 5
	be := cpu.New(cpu.Options{})
	values := make([]float32, rows*positions*width)
	for i := range values {
		values[i] = 1 + float32(i%7)
	}
	x := nn.Tensor{Shape: []int{rows, positions, width}, Data: nn.Host(values)}

	plain, each := &nn.Gelu{Out: 6}, &nn.Gelu{Out: 6}
	built(t, plain, []int{width}, nil)
	inside := nn.EachPosition(each)
	p, _ := built(t, inside, []int{positions, width}, nil)
	q, _ := built(t, &nn.Gelu{Out: 6}, []int{width}, nil)
	be.Copy(p.List[0].Values, q.List[0].Values.Float32s())
	want, _ := plain.Forward(&nn.Pass{Backend: be}, nn.Tensor{Shape: []int{rows * positions, width}, Data: x.Data})
	got, _ := inside.Forward(&nn.Pass{Backend: be}, x)
	require.Equal(t, []int{rows, positions, 6}, got.Shape)
	require.Equal(t, want.Data.Float32s(), got.Data.Float32s())

	drop := nn.EachPosition(nn.EachPosition(&nn.Dropout{Rate: .5}))
	built(t, drop, []int{positions, 1, width}, nil)
	whole := nn.Tensor{Shape: []int{rows, positions, 1, width}, Data: x.Data}
	pass := &nn.Pass{Backend: be, Train: true, Random: nn.Stream{Seed: 1, First: 10, Stride: 3}}
	all, _ := drop.Forward(pass, whole)
	masked := slices.Clone(all.Data.Float32s())
	require.Contains(t, masked, float32(0))
	for r := range rows { // each row on another worker
		pass.Random = nn.Stream{Seed: 1, First: 10 + 3*r}
		one, _ := drop.Forward(pass, nn.Tensor{Shape: []int{1, positions, 1, width}, Data: x.Data.Slice(r*positions*width, (r+1)*positions*width)})
		require.Equal(t, masked[r*positions*width:][:positions*width], one.Data.Float32s(), "row %d", r)
	}
}

// Layers that follow Embed get gradients; ids do not. Combinators that stand first return no
// gradient of their input either.
func TestCombinatorsWithoutInputGradient(t *testing.T) {
	be := cpu.New(cpu.Options{})
	for name, l := range map[string]nn.Layer{
		"residual":      nn.Residual(nn.Chain(&nn.Linear{Out: 4}, &nn.Linear{Out: 4})),
		"add":           nn.Add(&nn.Linear{Out: 4}, &nn.Linear{Out: 4}),
		"concatenate":   nn.Concatenate(&nn.Linear{Out: 4}, &nn.Linear{Out: 4}),
		"each position": nn.EachPosition(&nn.Linear{Out: 4}),
		"attention":     &nn.SelfAttention{},
		"norm":          &nn.LayerNorm{},
		"positions":     &nn.Positions{},
	} {
		shape := []int{4, 4}
		if name == "residual" || name == "add" || name == "concatenate" {
			shape = []int{4}
		}
		p, _ := built(t, l, shape, nil)
		x := nn.Tensor{Shape: append([]int{3}, shape...)}
		n := 3
		for _, d := range shape {
			n *= d
		}
		x.Data = be.Alloc(n)
		y, back := l.Forward(&nn.Pass{Backend: be, Train: true}, x)
		for i := range y.Data.Float32s() {
			y.Data.Float32s()[i] = 1
		}
		require.Equal(t, nn.Tensor{}, back(y), name)
		require.NotZero(t, slices.Max(p.Grads.Float32s()), name)
	}
}
