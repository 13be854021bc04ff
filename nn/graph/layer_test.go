package graph_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/graph"
	"github.com/ringtrain/ringtrain/nn/nntest"
)

// variable is a learnable of float32.
func variable(g *gorgonia.ExprGraph, name string, shape ...int) *gorgonia.Node {
	return gorgonia.NewTensor(g, tensor.Float32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
}

// dense is tanh(x·w + b), with w (in, out).
func dense(out int) *graph.Layer {
	return &graph.Layer{Build: func(g *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
		w, b := variable(g, "w", x.Shape()[1], out), variable(g, "b", out)
		y := gorgonia.Must(gorgonia.BroadcastAdd(gorgonia.Must(gorgonia.Mul(x, w)), b, nil, []byte{0}))
		return graph.Output{Y: gorgonia.Must(gorgonia.Tanh(y)), Learnables: gorgonia.Nodes{w, b}}, nil
	}}
}

// convolution has filters of 3x3 and makes vectors. Its gradients pass through views.
func convolution(filters int) *graph.Layer {
	return &graph.Layer{Build: func(g *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
		w := variable(g, "w", filters, x.Shape()[1], 3, 3)
		y, err := gorgonia.Conv2d(x, w, tensor.Shape{3, 3}, []int{1, 1}, []int{1, 1}, []int{1, 1})
		if err != nil {
			return graph.Output{}, err
		}
		rows := x.Shape()[0]
		flat, err := gorgonia.Reshape(y, tensor.Shape{rows, y.Shape().TotalSize() / rows})
		return graph.Output{Y: flat, Learnables: gorgonia.Nodes{w}}, err
	}}
}

// A Layer keeps few of the programs that it has compiled for different numbers of rows.
func TestLayerForgetsPrograms(t *testing.T) {
	b := cpu.New(cpu.Options{})
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	layer := dense(3)
	_, err := nn.NewClassifier(b, nn.Chain(layer, &nn.Softmax{Out: 3}), []int{2}, 3, 1)
	require.NoError(t, err)
	first := make([]float32, 3)
	for round := range 2 {
		for rows := 1; rows <= graph.MostPrograms+5; rows++ {
			b.Recycle()
			x := nn.Tensor{Shape: []int{rows, 2}, Data: b.Temp(2 * rows)}
			for i := range x.Data.Float32s() {
				x.Data.Float32s()[i] = float32(i%2) + .5
			}
			y, _ := layer.Forward(&nn.Pass{Backend: b}, x)
			require.NoError(t, b.Sync(t.Context()))
			if round == 0 && rows == 1 {
				copy(first, y.Data.Float32s())
			}
			require.Equal(t, first, y.Data.Float32s()[:3])
			require.LessOrEqual(t, layer.Programs(), graph.MostPrograms)
		}
	}
}

// The gradients are those of finite differences, of inner layers and of the first, which
// computes none for its input.
func TestLayerGradients(t *testing.T) {
	for name, c := range map[string]struct {
		layer nn.Layer
		in    []int
	}{
		"first":       {dense(3), []int{4}},
		"inner":       {nn.Chain(&nn.Linear{Out: 5}, dense(3)), []int{4}},
		"two":         {nn.Chain(dense(5), dense(3)), []int{4}},
		"convolution": {nn.Chain(&nn.Conv2D{Out: 2, Size: 3}, convolution(2)), []int{1, 6, 6}},
		"transposed": {nn.Chain(&nn.Linear{Out: 4}, &graph.Layer{Build: func(g *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
			w := variable(g, "w", 3, 4) // (out, in), like nn's
			y, err := gorgonia.Mul(x, gorgonia.Must(gorgonia.Transpose(w, 1, 0)))
			return graph.Output{Y: y, Learnables: gorgonia.Nodes{w}}, err
		}}), []int{5}},
	} {
		t.Run(name, func(t *testing.T) { nntest.CheckGradients(t, cpu.New(cpu.Options{}), c.layer, c.in, 5) })
	}
}

// A Layer computes what layers of nn compute, at all numbers of rows in any order, and adds
// its gradients to those that are there.
func TestLayerEqualsLinear(t *testing.T) {
	const in, out = 6, 4
	be := cpu.New(cpu.Options{})
	builder := nn.NewBuilder(1)
	layer := &graph.Layer{Build: func(g *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
		w, b := variable(g, "w", in, out), variable(g, "b", out)
		y, err := gorgonia.BroadcastAdd(gorgonia.Must(gorgonia.Mul(x, w)), b, nil, []byte{0})
		return graph.Output{Y: y, Learnables: gorgonia.Nodes{w, b}}, err
	}}
	shape, err := layer.Init([]int{in}, nil, builder)
	require.NoError(t, err)
	require.Equal(t, []int{out}, shape)
	params, err := builder.Build(be)
	require.NoError(t, err)
	require.Equal(t, []string{"w", "b"}, []string{params.List[0].Name, params.List[1].Name})
	w, b := params.List[0].Values.Float32s(), params.List[1].Values.Float32s()
	require.Contains(t, b, float32(0))
	require.NotContains(t, w, float32(0), "drawn from the seed")
	r := rand.New(rand.NewPCG(3, 4))
	jitter(r, b)

	grads := make([]float64, len(w))
	for _, rows := range []int{3, 1, 7, 3, 0} {
		x, dy := make([]float32, rows*in), make([]float32, rows*out)
		jitter(r, x)
		jitter(r, dy)
		be.Recycle()
		y, back := layer.Forward(&nn.Pass{Backend: be, Train: true}, nn.Tensor{Shape: []int{rows, in}, Data: nn.Host(x)})
		require.Equal(t, []int{rows, out}, y.Shape)
		dx := back(nn.Tensor{Shape: y.Shape, Data: nn.Host(dy)})
		require.Nil(t, dx.Shape, "nothing before it has parameters")
		for i := range rows {
			for o := range out {
				sum := float64(b[o])
				for k := range in {
					sum += float64(x[i*in+k]) * float64(w[k*out+o])
					grads[k*out+o] += float64(x[i*in+k]) * float64(dy[i*out+o])
				}
				require.InDelta(t, sum, y.Data.Float32s()[i*out+o], 1e-6)
			}
		}
		for i, g := range params.List[0].Grads.Float32s() {
			require.InDelta(t, grads[i], g, 1e-5)
		}
	}
	require.NoError(t, be.Sync(t.Context()))
}

// Layers before and after learn where documents end.
func TestLayerKeepsLengths(t *testing.T) {
	be, builder := cpu.New(cpu.Options{}), nn.NewBuilder(1)
	builder.Param("before", []int{1}, nn.Zeros) // so that the gradient of the input is needed
	layer := dense(3)
	_, err := layer.Init([]int{4}, nil, builder)
	require.NoError(t, err)
	_, err = builder.Build(be)
	require.NoError(t, err)
	for _, lengths := range [][]int{{2, 0, 1}, {0, 0}, nil} {
		rows := 0
		for _, n := range lengths {
			rows += n
		}
		y, back := layer.Forward(&nn.Pass{Backend: be, Train: true}, nn.Tensor{Shape: []int{rows, 4}, Data: nn.Host(make([]float32, 4*rows)), Lengths: lengths})
		require.Equal(t, lengths, y.Lengths)
		dx := back(y)
		require.Equal(t, []int{rows, 4}, dx.Shape)
		require.Equal(t, lengths, dx.Lengths)
	}
}

// A learnable with a value begins with it. The same seed gives the same other values.
func TestLayerInitialValues(t *testing.T) {
	values := func(seed uint64) (w, v []float32) {
		be, builder := cpu.New(cpu.Options{}), nn.NewBuilder(seed)
		layer := &graph.Layer{Build: func(g *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
			w := variable(g, "w", 2, 2)
			v := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithName("v"), gorgonia.WithValue(tensor.New(tensor.WithBacking([]float32{1, 2, 3, 4}), tensor.WithShape(2, 2))))
			y, err := gorgonia.Mul(gorgonia.Must(gorgonia.Mul(x, w)), v)
			return graph.Output{Y: y, Learnables: gorgonia.Nodes{w, v}}, err
		}}
		_, err := layer.Init([]int{2}, []int{2}, builder)
		require.NoError(t, err)
		p, err := builder.Build(be)
		require.NoError(t, err)
		return p.List[0].Values.Float32s(), p.List[1].Values.Float32s()
	}
	w, v := values(5)
	require.Equal(t, []float32{1, 2, 3, 4}, v)
	again, _ := values(5)
	other, _ := values(6)
	require.Equal(t, w, again)
	require.NotEqual(t, w, other)
}

// A learnable without a value begins as those of layers of nn do.
func TestLayerDrawsInitialValues(t *testing.T) {
	be, builder, like := cpu.New(cpu.Options{}), nn.NewBuilder(3), nn.NewBuilder(3)
	layer := &graph.Layer{Build: func(g *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
		m, f, b := variable(g, "m", 36, 2), variable(g, "f", 1, 1, 3, 3), variable(g, "b", 2)
		y := gorgonia.Must(gorgonia.Conv2d(x, f, tensor.Shape{3, 3}, []int{1, 1}, []int{1, 1}, []int{1, 1}))
		y = gorgonia.Must(gorgonia.Mul(gorgonia.Must(gorgonia.Reshape(y, tensor.Shape{x.Shape()[0], 36})), m))
		y, err := gorgonia.BroadcastAdd(y, b, nil, []byte{0})
		return graph.Output{Y: y, Learnables: gorgonia.Nodes{m, f, b}}, err
	}}
	_, err := layer.Init([]int{1, 6, 6}, []int{2}, builder)
	require.NoError(t, err)
	got, err := builder.Build(be)
	require.NoError(t, err)
	like.Param("m", []int{36, 2}, nn.GlorotUniform)
	like.Param("f", []int{1, 1, 3, 3}, nn.FanInUniform)
	like.Param("b", []int{2}, nn.Zeros)
	want, err := like.Build(be)
	require.NoError(t, err)
	require.Equal(t, want.Values.Float32s(), got.Values.Float32s())
}

// Values that are not in row-major order in memory begin in the places that they have in the
// matrix.
func TestLayerInitialValuesOfAView(t *testing.T) {
	be, builder := cpu.New(cpu.Options{}), nn.NewBuilder(1)
	layer := &graph.Layer{Build: func(g *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
		value := tensor.New(tensor.WithBacking([]float32{1, 2, 3, 4, 5, 6}), tensor.WithShape(2, 3))
		if err := value.T(); err != nil {
			return graph.Output{}, err
		}
		w := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(3, 2), gorgonia.WithName("w"), gorgonia.WithValue(value))
		y, err := gorgonia.Mul(x, w)
		return graph.Output{Y: y, Learnables: gorgonia.Nodes{w}}, err
	}}
	_, err := layer.Init([]int{3}, []int{2}, builder)
	require.NoError(t, err)
	p, err := builder.Build(be)
	require.NoError(t, err)
	require.Equal(t, []float32{1, 4, 2, 5, 3, 6}, p.List[0].Values.Float32s())
}

// Init names what a Layer cannot use.
func TestLayerRefuses(t *testing.T) {
	type build = func(g *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error)
	only := func(y *gorgonia.Node, err error) (graph.Output, error) { return graph.Output{Y: y}, err }
	for want, b := range map[string]build{
		"nn: model: it has no graph: Layer.Build is nil": nil,
		"building its graph for 2 rows: sorry": func(*gorgonia.ExprGraph, *gorgonia.Node) (graph.Output, error) {
			return graph.Output{}, errors.New("sorry")
		},
		"building its graph for 2 rows panicked: ": func(g *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
			return only(gorgonia.Must(gorgonia.Mul(x, x)), nil)
		},
		"its Output.Y must be a node of the graph":                            func(*gorgonia.ExprGraph, *gorgonia.Node) (graph.Output, error) { return graph.Output{}, nil },
		"its output has shape () for an input of 2 rows; it must be (2, ...)": func(_ *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) { return only(gorgonia.Sum(x)) },
		"its output has shape (3, 2) for an input of 2 rows; it must be (2, ...)": func(_ *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
			return only(gorgonia.Transpose(x, 1, 0))
		},
		"use the layer Dropout.v1": func(_ *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
			return only(gorgonia.Dropout(x, .5))
		},
		"draws random numbers with a seed from the clock": func(g *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
			return only(gorgonia.Add(x, gorgonia.GaussianRandomNode(g, tensor.Float32, 0, 1, x.Shape()...)))
		},
		"its variable w has no value: add it to Output.Learnables": func(g *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
			return only(gorgonia.Mul(x, variable(g, "w", 3, 2)))
		},
		"its graph makes rows of shape [2], but [3] is needed here": weighted(func(g *gorgonia.ExprGraph) *gorgonia.Node { return variable(g, "w", 3, 2) }),
		"w has other values each time it is built: leave out gorgonia.WithInit": weighted(func(g *gorgonia.ExprGraph) *gorgonia.Node {
			return gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(3, 3), gorgonia.WithName("w"), gorgonia.WithInit(gorgonia.GlorotN(1)))
		}),
		`its learnable "a.w" must have a name of its own, without a dot`:              weighted(func(g *gorgonia.ExprGraph) *gorgonia.Node { return variable(g, "a.w", 3, 3) }),
		"a row of its output has shape (3) in a batch of 2 rows, but (6) in one of 3": growing,
		"it has 1 learnables in a batch of 2 rows, but 0 in one of 3":                 forgetful,
		"its learnable x :: Matrix float32 must be a variable of the graph": func(_ *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
			return graph.Output{Y: x, Learnables: gorgonia.Nodes{x}}, nil
		},
		"its learnable s is a scalar, which is not supported; use a vector of one element": scaled,
		"differentiating its graph: ": func(g *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
			w := variable(g, "w", 3)
			return graph.Output{Y: x, Learnables: gorgonia.Nodes{w}}, nil
		},
		"end the graph before it, and use the layer BatchNorm2D.v1": normalized,
	} {
		t.Run(want, func(t *testing.T) {
			_, err := (&graph.Layer{Build: b}).Init([]int{3}, []int{3}, nn.NewBuilder(1))
			require.ErrorContains(t, err, want)
		})
	}
}

// weighted is x times a learnable.
func weighted(w func(g *gorgonia.ExprGraph) *gorgonia.Node) func(g *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
	return func(g *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
		n := w(g)
		y, err := gorgonia.Mul(x, n)
		return graph.Output{Y: y, Learnables: gorgonia.Nodes{n}}, err
	}
}

// growing makes longer rows in larger batches.
func growing(g *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
	w := variable(g, "w", 3, 3*(x.Shape()[0]-1))
	y, err := gorgonia.Mul(x, w)
	return graph.Output{Y: y, Learnables: gorgonia.Nodes{w}}, err
}

// forgetful learns nothing in larger batches.
func forgetful(g *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
	if x.Shape()[0] > 2 {
		return graph.Output{Y: x}, nil
	}
	return weighted(func(g *gorgonia.ExprGraph) *gorgonia.Node { return variable(g, "w", 3, 3) })(g, x)
}

func scaled(g *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
	s := gorgonia.NewScalar(g, tensor.Float32, gorgonia.WithName("s"))
	y, err := gorgonia.Mul(x, s)
	return graph.Output{Y: y, Learnables: gorgonia.Nodes{s}}, err
}

func normalized(g *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
	image := gorgonia.Must(gorgonia.Reshape(x, tensor.Shape{x.Shape()[0], 3, 1, 1}))
	y, scale, bias, _, err := gorgonia.BatchNorm(image, nil, nil, .9, 1e-5)
	if err != nil {
		return graph.Output{}, err
	}
	y, err = gorgonia.Reshape(y, tensor.Shape{x.Shape()[0], 3})
	return graph.Output{Y: y, Learnables: gorgonia.Nodes{scale, bias}}, err
}

// A graph that fails at a number of rows that Init did not try makes Sync fail, and
// neither panics nor stops the process.
func TestLayerFails(t *testing.T) {
	be, builder := cpu.New(cpu.Options{}), nn.NewBuilder(1)
	layer := &graph.Layer{Build: func(g *gorgonia.ExprGraph, x *gorgonia.Node) (graph.Output, error) {
		if x.Shape()[0] == 5 {
			return graph.Output{}, errors.New("five is too many")
		}
		return weighted(func(g *gorgonia.ExprGraph) *gorgonia.Node { return variable(g, "w", 3, 3) })(g, x)
	}}
	_, err := layer.Init([]int{3}, []int{3}, builder.Scope("head"))
	require.NoError(t, err)
	_, err = builder.Build(be)
	require.NoError(t, err)
	y, back := layer.Forward(&nn.Pass{Backend: be}, nn.Tensor{Shape: []int{5, 3}, Data: nn.Host(make([]float32, 15))})
	require.Equal(t, "head", builder.HostLayer(), "steps with it cannot be recorded")
	const want = "nn: head: building its graph for 5 rows: five is too many"
	require.EqualError(t, be.Sync(t.Context()), want)
	back(y)
	require.EqualError(t, be.Sync(t.Context()), want)
}

// A layer has one place in one model, because it has one list of parameters.
func TestLayerHasOnePlace(t *testing.T) {
	b := cpu.New(cpu.Options{})
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	layer := dense(3)
	_, err := nn.NewClassifier(b, nn.Chain(layer, layer, &nn.Softmax{Out: 3}), []int{3}, 3, 1)
	require.ErrorContains(t, err, "the layer already belongs to a model; make a new layer for each place")
}

// Layers of several ranks can compute at once.
func TestLayersAtOnce(t *testing.T) {
	var ranks sync.WaitGroup
	for range 4 {
		ranks.Go(func() {
			be, builder := cpu.New(cpu.Options{}), nn.NewBuilder(1)
			layer := nn.Chain(&nn.Linear{Out: 4}, dense(4), dense(3))
			if _, err := layer.Init([]int{4}, []int{3}, builder); !assert.NoError(t, err) {
				return
			}
			_, err := builder.Build(be)
			assert.NoError(t, err)
			for rows := range 5 {
				y, back := layer.Forward(&nn.Pass{Backend: be, Train: true}, nn.Tensor{Shape: []int{rows, 4}, Data: nn.Host(make([]float32, 4*rows))})
				back(y)
			}
			assert.NoError(t, be.Sync(t.Context()))
		})
	}
	ranks.Wait()
}
