package models_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/text"
)

// spacyVectors and spacySums are from spaCy 3.8.18 and Thinc 8.3: the vectors of the tokens of
// three documents, and Σ|g[i]| and Σ (i+1)·g[i] of the gradient g of each parameter. Element i
// of parameter k is ((7919·i + 104729·k) mod 1009 - 504)/1024, and element i of the gradient
// of the vectors is i mod 5 - 2.
var (
	spacyVectors = []float64{
		0.782131672, 0.47699672, -0.249750346, -0.534951508,
		1.69422936, 0.380843163, -0.696122229, -0.589223444,
		1.04021955, -0.328306139, -0.37441662, -0.392516553,
		1.16062355, -0.434841514, -0.415774524, -0.0665051341,
		1.36945498, -0.302357703, -0.0096745044, -0.228548914,
		1.16060829, 0.115308225, -0.48182559, -0.492403805,
		0.654948771, 0.657164752, -0.464954853, -0.584789455,
		1.27893198, 0.120497823, -0.0654863417, -0.404260844,
		1.12416911, -0.0373963118, -0.345691264, -0.48867172,
		0.773821831, -0.239014074, -0.279872119, -0.400250137,
		1.05691075, -0.0764960647, -0.385129273, -0.210797459,
	}
	spacySums = [][2]float64{
		{36.72677, 4.621303},
		{59.7977, 14.09982},
		{34.32102, -415.9826},
		{20.47016, 352.2274},
		{251.3054, -775.011},
		{33.38225, -0.09024233},
		{24.9209, 31.14744},
		{31.42538, -12.96704},
		{137.6326, -3377.041},
		{60.3504, 152.4051},
		{9.978217, -6.887518},
		{4.277565, 2.781732},
		{54.83747, -37.05782},
		{8.664612, -2.11756},
		{10.49447, 0.5366062},
		{4, 0},
	}
)

// With the same weights, vectors and gradients are spaCy's.
func TestTok2VecEqualsSpacy(t *testing.T) {
	tok2vec := models.Tok2Vec{
		Embed:  models.MultiHashEmbed{Width: 4, Attrs: []string{"NORM", "PREFIX", "SUFFIX", "SHAPE"}, Rows: []int{20, 10, 10, 10}},
		Encode: models.MaxoutWindowEncoder{Width: 4, Depth: 2, Window: 1, Pieces: 3},
	}
	be, b, l := cpu.New(cpu.Options{}), nn.NewBuilder(0), tok2vec.Layer(.1)
	b.TakesDocuments()
	_, err := l.Init([]int{4, 2}, nil, b)
	require.NoError(t, err)
	params, err := b.Build(be)
	require.NoError(t, err)
	require.Len(t, params.List, len(spacySums))
	for k, p := range params.List {
		for i := range p.Values.Float32s() {
			p.Values.Float32s()[i] = float32((7919*i+104729*k)%1009-504) / 1024
		}
	}
	var ids []uint64
	var lengths []int
	lexemes := text.NewLexemes([]text.Attr{text.Norm, text.Prefix, text.Suffix, text.Shape})
	for _, words := range [][]string{{"Casey", "went", "to", "New", "York", "."}, {"Hello"}, {"London", "calls", "2", "times"}} {
		ids, lengths = lexemes.Append(ids, words), append(lengths, len(words))
	}
	y, back := l.Forward(&nn.Pass{Backend: be}, nn.WideIDs(ids, 4, lengths))
	require.Len(t, y.Data.Float32s(), len(spacyVectors))
	for i, v := range spacyVectors {
		require.InDelta(t, v, y.Data.Float32s()[i], 1e-5, "element %d", i)
	}
	for i := range spacyVectors {
		y.Data.Float32s()[i] = float32(i%5 - 2)
	}
	back(y)
	for k, p := range params.List {
		var sums [2]float64
		for i, g := range p.Grads.Float32s() {
			sums[0] += math.Abs(float64(g))
			sums[1] += float64(i+1) * float64(g)
		}
		require.InEpsilon(t, spacySums[k][0], sums[0], 1e-5, p.Name)
		require.InDelta(t, spacySums[k][1], sums[1], 1e-5*spacySums[k][0]*float64(p.Grads.Len()), p.Name)
	}
}
