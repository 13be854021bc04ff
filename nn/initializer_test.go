package nn_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
)

// Every initializer has the promised standard deviation; uniform ones stay within their bounds.
func TestInitializers(t *testing.T) {
	const nO, nI = 100, 400
	matrix, filters := []int{nO, nI}, []int{nO, nI / 4, 2, 2} // with as many inputs of an output
	uniform := func(a float64) float64 { return a / math.Sqrt(3) }
	for _, c := range []struct {
		name      string
		shape     []int
		init      nn.Initializer
		deviation float64
		bound     float64 // 0 for none
	}{
		{"uniform", matrix, nn.Uniform(-.1, .1), uniform(.1), .1},
		{"normal", matrix, nn.Normal(.5), .5, 0},
		{"glorot uniform", matrix, nn.GlorotUniform, uniform(math.Sqrt(6. / 500)), math.Sqrt(6. / 500)},
		{"glorot normal", matrix, nn.GlorotNormal, math.Sqrt(2. / 500), 0},
		{"he uniform", matrix, nn.HeUniform, uniform(math.Sqrt(6. / 400)), math.Sqrt(6. / 400)},
		{"he normal", matrix, nn.HeNormal, math.Sqrt(2. / 400), 0},
		{"lecun uniform", matrix, nn.LecunUniform, uniform(math.Sqrt(3. / 400)), math.Sqrt(3. / 400)},
		{"lecun normal", matrix, nn.LecunNormal, math.Sqrt(1. / 400), 0},
		{"fan in", matrix, nn.FanInUniform, uniform(1. / 20), 1. / 20},
		{"glorot normal filters", filters, nn.GlorotNormal, math.Sqrt(2. / 800), 0},
		{"he normal filters", filters, nn.HeNormal, math.Sqrt(2. / 400), 0},
		{"lecun uniform filters", filters, nn.LecunUniform, uniform(math.Sqrt(3. / 400)), math.Sqrt(3. / 400)},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := nn.NewBuilder(1)
			b.Param("W", c.shape, c.init)
			p, err := b.Build(cpu.New(cpu.Options{}))
			require.NoError(t, err)
			var sum, squares, largest float64
			for _, v := range p.List[0].Values.Float32s() {
				x := float64(v)
				sum, squares, largest = sum+x, squares+x*x, max(largest, math.Abs(x))
			}
			require.InDelta(t, 0, sum/(nO*nI), .02*c.deviation)
			require.InEpsilon(t, c.deviation, math.Sqrt(squares/(nO*nI)), .02)
			if c.bound != 0 {
				require.LessOrEqual(t, largest, c.bound*1.000001)
				require.Greater(t, largest, c.bound*.99)
			} else {
				require.Greater(t, largest, 3.5*c.deviation, "normal numbers have tails")
			}
		})
	}
}

// A parameter may be a single number.
func TestInitializersOfAScalar(t *testing.T) {
	for _, init := range []nn.Initializer{nn.GlorotUniform, nn.GlorotNormal, nn.HeUniform, nn.HeNormal, nn.LecunUniform, nn.LecunNormal, nn.FanInUniform} {
		b := nn.NewBuilder(1)
		b.Param("s", nil, init)
		p, err := b.Build(cpu.New(cpu.Options{}))
		require.NoError(t, err)
		require.Len(t, p.List[0].Values.Float32s(), 1)
	}
	b := nn.NewBuilder(1)
	b.Param("s", nil, nil)
	_, err := b.Build(cpu.New(cpu.Options{}))
	require.EqualError(t, err, "nn: parameter s has no Initializer; pass one, such as Zeros")
}

// The initializer of a bias is given the shape of the layer's weights.
func TestBiasKnowsItsFanIn(t *testing.T) {
	for name, c := range map[string]struct {
		layer nn.Layer
		in    []int
		bound float32
	}{
		"linear":  {&nn.Linear{Out: 200, InitB: nn.FanInUniform}, []int{100}, .1},
		"relu":    {&nn.Relu{Out: 200, InitB: nn.FanInUniform}, []int{100}, .1},
		"softmax": {&nn.Softmax{Out: 200, InitB: nn.FanInUniform}, []int{100}, .1},
		"conv2d":  {&nn.Conv2D{Out: 200, Size: 5}, []int{4, 5, 5}, .1},
	} {
		t.Run(name, func(t *testing.T) {
			b := nn.NewBuilder(1)
			_, err := c.layer.Init(c.in, nil, b)
			require.NoError(t, err)
			p, err := b.Build(cpu.New(cpu.Options{}))
			require.NoError(t, err)
			var largest float32
			for _, v := range p.Lookup("b").Values.Float32s() {
				largest = max(largest, v, -v)
			}
			require.LessOrEqual(t, largest, c.bound)
			require.Greater(t, largest, .9*c.bound)
		})
	}
}
