package nn_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
)

func TestBuildPacksArenas(t *testing.T) {
	b := nn.NewBuilder(1)
	require.False(t, b.NeedsInputGradient())
	w := b.Scope("layers.0").Param("W", []int{3, 2}, nn.Uniform(2, 3))
	require.True(t, b.NeedsInputGradient())
	v := b.Scope("layers.1").Scope("layers.0").Param("b", []int{20}, nn.Zeros)
	p, err := b.Build(cpu.New(cpu.Options{}))
	require.NoError(t, err)

	require.Equal(t, []*nn.Param{w, v}, p.List)
	require.Equal(t, "layers.0.W", w.Name)
	require.Equal(t, "layers.1.layers.0.b", v.Name)
	require.Equal(t, 0, w.Offset)
	require.Equal(t, 16, v.Offset, "parameters start at multiples of 64 bytes")
	require.Equal(t, 36, p.Values.Len())
	require.Equal(t, 36, p.Grads.Len())
	require.Equal(t, 26, p.Count())
	require.Same(t, v, p.Lookup("layers.1.layers.0.b"))
	require.Nil(t, p.Lookup("b"))

	for _, x := range w.Values.Float32s() {
		require.GreaterOrEqual(t, x, float32(2))
		require.Less(t, x, float32(3))
	}
	// A Param aliases its part of the arenas.
	v.Values.Float32s()[0] = 5
	require.Equal(t, float32(5), p.Values.Float32s()[16])
	v.Grads.Float32s()[1] = 6
	require.Equal(t, float32(6), p.Grads.Float32s()[17])

	_, err = b.Build(cpu.New(cpu.Options{}))
	require.ErrorContains(t, err, "twice")
}

func TestBuildReportsEveryMistake(t *testing.T) {
	b := nn.NewBuilder(1)
	b.Scope("a").Param("W", []int{2}, nn.Zeros)
	b.Scope("a").Param("W", []int{2}, nn.Zeros)
	b.Param("empty", []int{2, 0}, nn.Zeros)
	_, err := b.Build(cpu.New(cpu.Options{}))
	require.ErrorContains(t, err, "a.W is declared twice")
	require.ErrorContains(t, err, "empty has shape [2 0]")
}

// initial returns the initial values of a parameter that is declared after others.
func initial(t *testing.T, seed uint64, name string, before ...string) []float32 {
	b := nn.NewBuilder(seed)
	for _, other := range before {
		b.Param(other, []int{7}, nn.GlorotUniform)
	}
	q := b.Param(name, []int{30, 50}, nn.GlorotUniform)
	_, err := b.Build(cpu.New(cpu.Options{}))
	require.NoError(t, err)
	return q.Values.Float32s()
}

func TestInitialWeightsDependOnSeedAndNameOnly(t *testing.T) {
	w := initial(t, 1, "W")
	require.Equal(t, w, initial(t, 1, "W", "x", "y"))
	require.NotEqual(t, w, initial(t, 2, "W"))
	require.NotEqual(t, w, initial(t, 1+1<<32, "W"))
	require.NotEqual(t, w, initial(t, 1, "V"))
}

func TestGlorotUniformRange(t *testing.T) {
	bound := math.Sqrt(6. / 80)
	low, high, mean := 0., 0., 0.
	w := initial(t, 1, "W")
	for _, x := range w {
		low, high, mean = min(low, float64(x)), max(high, float64(x)), mean+float64(x)/float64(len(w))
	}
	require.InDelta(t, -bound, low, .01*bound)
	require.InDelta(t, bound, high, .01*bound)
	require.InDelta(t, 0, mean, .05*bound)
}

func TestDrawsAreTheSpecifiedWords(t *testing.T) {
	b := nn.NewBuilder(7)
	q := b.Param("W", []int{6}, nn.Uniform(0, 1))
	_, err := b.Build(cpu.New(cpu.Options{}))
	require.NoError(t, err)
	id := uint64(0xcbf29ce484222325) // FNV-1a of "W", 64 bits
	id = (id ^ 'W') * 0x100000001b3
	for i, x := range q.Values.Float32s() {
		words := nn.Philox([2]uint32{7, 0}, [4]uint32{uint32(i / 4), uint32(id), uint32(id >> 32), math.MaxUint32})
		require.Equal(t, float32(words[i%4]>>8)/(1<<24), x)
	}
}

// More parameters than any memory holds are an error. Counting them does not overflow.
func TestBuildRefusesTooManyParameters(t *testing.T) {
	b := nn.NewBuilder(1)
	b.Param("small", []int{3, 5}, nn.Zeros)
	require.Equal(t, 15, b.Len())
	b.Param("large", []int{math.MaxInt / 3, 1 << 40}, nn.Zeros)
	b.Param("more", []int{math.MaxInt / 3}, nn.Zeros)
	require.Greater(t, b.Len(), math.MaxInt/8)
	_, err := b.Build(cpu.New(cpu.Options{}))
	require.ErrorContains(t, err, "do not fit into any memory")
}
