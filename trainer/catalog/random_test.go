package catalog_test

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// arguments are the number arguments of layers, with the largest value that is drawn.
var arguments = map[string]map[string]int{
	"Linear.v1": {"nO": 6}, "Relu.v1": {"nO": 6}, "Gelu.v1": {"nO": 6}, "Maxout.v1": {"nO": 4, "nP": 3}, "Embed.v1": {"nO": 3, "nV": 3},
	"Dropout.v1": {}, "LayerNorm.v1": {"nI": 24}, "Positions.v1": {}, "SelfAttention.v1": {"heads": 3}, "Softmax.v1": {"nO": 3},
	"Images.v1": {"channels": 3}, "Conv2D.v1": {"nO": 3, "size": 3, "stride": 2, "padding": 1}, "MaxPool2D.v1": {"size": 3, "stride": 2},
	"AvgPool2D.v1": {"size": 3, "padding": 1}, "BatchNorm2D.v1": {}, "relu_activation.v1": {}, "Flatten.v1": {},
}

// layer draws a layer, whose parts nest at most to a depth.
func layer(t *rapid.T, depth int) map[string]any {
	names := append(slices.Sorted(maps.Keys(arguments)), "Reshape.v1", "Standardize.v1")
	if depth > 0 {
		names = append(names, "chain.v1", "chain.v1", "add.v1", "concatenate.v1", "residual.v1", "with_array.v1", "clone.v1")
	}
	name := rapid.SampledFrom(names).Draw(t, "name")
	block := map[string]any{"@layers": name}
	for _, argument := range slices.Sorted(maps.Keys(arguments[name])) {
		if n := rapid.IntRange(0, arguments[name][argument]).Draw(t, argument); n > 0 {
			block[argument] = n
		}
	}
	switch name {
	case "Reshape.v1":
		block["shape"] = rapid.SampledFrom([][]int{{4, 6}, {24}, {2, 3, 4}, {1, 4, 6}, {12, 2}, {3, 4}}).Draw(t, "shape")
	case "Standardize.v1":
		block["mean"], block["deviation"] = .5, .5
	case "chain.v1", "add.v1", "concatenate.v1":
		block["*"] = layers(t, depth-1)
	case "residual.v1", "with_array.v1":
		block["layer"] = layer(t, depth-1)
	case "clone.v1":
		block["orig"], block["n"] = layer(t, depth-1), rapid.IntRange(0, 3).Draw(t, "n")
	}
	return block
}

func layers(t *rapid.T, depth int) []map[string]any {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) map[string]any { return layer(t, depth) }), 1, 3).Draw(t, "layers")
}

// A network from a config either is an error with a line, or it trains: no kernel meets a
// shape that it cannot take.
func TestRandomNetworks(t *testing.T) {
	trained := 0
	rapid.Check(t, func(t *rapid.T) {
		chain := append(layers(t, 3), map[string]any{"@layers": "Softmax.v1"})
		text, err := json.Marshal(chain)
		require.NoError(t, err)
		cfg, err := config.Parse("test.cfg", "[model]\n@layers = \"chain.v1\"\n* = "+string(text), nil)
		require.NoError(t, err)
		c := catalog.New()
		l, err := c.Layers(cfg)
		if err == nil {
			be := cpu.New(cpu.Options{})
			var m *nn.Classifier
			if m, err = nn.NewClassifier(be, l, []int{24}, 3, 1); err == nil {
				trained++
				x := make([]float32, 2*24)
				for i := range x {
					x[i] = float32(i%7) / 7
				}
				loss, _, err := m.Learn(&nn.Pass{Backend: be, Train: true}, nn.Batch{X: nn.Tensor{Shape: []int{2, 24}, Data: nn.Host(x)}, Labels: nn.HostInts([]int32{0, 2})})
				require.NoError(t, err)
				require.False(t, math.IsNaN(float64(loss.Float32s()[0])), string(text))
			}
			require.NoError(t, be.Close())
		}
		if err = c.Locate(cfg, err); err != nil {
			require.ErrorAs(t, err, new(*config.Error), string(text))
			require.NotRegexp(t, `\*?nn\.|layers\.\d`, err.Error())
		}
	})
	require.Positive(t, trained)
}
