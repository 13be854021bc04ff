package catalog_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// chain returns the [model] section of a chain of blocks: "name args".
func chain(blocks ...string) string {
	text := "[model]\n@layers = \"chain.v1\"\n"
	for i, b := range blocks {
		name, args, _ := strings.Cut(b, " ")
		text += fmt.Sprintf("[model.*.b%d]\n@layers = %q\n%s\n", i, name, strings.ReplaceAll(args, "; ", "\n"))
	}
	return text
}

// declared returns the shapes of parameters by name, and the shape of rows of output.
func declared(t *testing.T, text string, in, out []int) (map[string][]int, []int) {
	t.Helper()
	l, err := catalog.New().Layers(parse(t, text))
	require.NoError(t, err)
	b := nn.NewBuilder(1)
	b.TakesDocuments()
	if len(in) == 1 && in[0] == 3 {
		b.TakesColumns([]nn.ColumnSpan{{Width: 1}, {Width: 2, Categories: true}})
	}
	made, err := l.Init(in, out, b)
	require.NoError(t, err)
	shapes := map[string][]int{}
	for _, q := range b.Declared() {
		shapes[q.Name] = q.Shape
	}
	return shapes, made
}

// Each layer gets its arguments, and its parameters have the names that files of weights
// have.
func TestLayersFromConfigs(t *testing.T) {
	type shapes = map[string][]int
	inner := `{"@layers": "Linear.v1", "nO": 3}`
	cases := map[string]struct {
		text     string
		in, made []int
		params   shapes
	}{
		"Linear.v1":        {"nO = 4\nnI = 3", []int{3}, []int{4}, shapes{"layers.0.W": {4, 3}, "layers.0.b": {4}}},
		"Relu.v1":          {"nO = 4\nnormalize = true\ndropout = 0.5", []int{3}, []int{4}, shapes{"layers.0.W": {4, 3}, "layers.0.b": {4}, "layers.0.norm.G": {4}, "layers.0.norm.b": {4}}},
		"Gelu.v1":          {"nO = 4\nnormalize = true\ndropout = null", []int{3}, []int{4}, shapes{"layers.0.W": {4, 3}, "layers.0.b": {4}, "layers.0.norm.G": {4}, "layers.0.norm.b": {4}}},
		"Maxout.v1":        {"nO = 4\nnP = 2\nnormalize = true", []int{3}, []int{4}, shapes{"layers.0.W": {4, 2, 3}, "layers.0.b": {4, 2}, "layers.0.norm.G": {4}, "layers.0.norm.b": {4}}},
		"Softmax.v1":       {"nO = 4", []int{3}, []int{4}, shapes{"layers.0.W": {4, 3}, "layers.0.b": {4}}},
		"Dropout.v1":       {"rate = 0.1", []int{3}, []int{3}, shapes{}},
		"LayerNorm.v1":     {"nI = 6", []int{2, 3}, []int{2, 3}, shapes{"layers.0.G": {6}, "layers.0.b": {6}}},
		"Embed.v1":         {"nO = 4\nnV = 9\ncolumn = null", []int{3}, []int{3, 4}, shapes{"layers.0.E": {9, 4}}},
		"HashEmbed.v1":     {"nO = 4\nnV = 9\ncolumn = 1\nseed = 8", []int{2, 2}, []int{4}, shapes{"layers.0.E": {9, 4}}},
		"expand_window.v1": {"window_size = 2", []int{4}, []int{20}, shapes{}},
		"Columns.v1":       {"columns = [1, 0]", []int{3}, []int{3}, shapes{}},
		"Positions.v1":     {"", []int{3, 4}, []int{3, 4}, shapes{"layers.0.E": {3, 4}}},
		"residual.v1":      {"layer = " + inner, []int{3}, []int{3}, shapes{"layers.0.W": {3, 3}, "layers.0.b": {3}}},
		"with_array.v1":    {"pad = 0\nlayer = " + inner, []int{5, 4}, []int{5, 3}, shapes{"layers.0.W": {3, 4}, "layers.0.b": {3}}},
		"clone.v1":         {"n = 2\norig = " + inner, []int{4}, []int{3}, shapes{"layers.0.W": {3, 4}, "layers.0.b": {3}, "layers.1.W": {3, 3}, "layers.1.b": {3}}},
		"concatenate.v1":   {"* = [" + inner + ", " + inner + "]", []int{4}, []int{6}, shapes{"layers.0.W": {3, 4}, "layers.0.b": {3}, "layers.1.W": {3, 4}, "layers.1.b": {3}}},
		"add.v1":           {"layer2 = " + inner + "\n* = [" + inner + "]", []int{4}, []int{3}, shapes{"layers.0.W": {3, 4}, "layers.0.b": {3}, "layers.1.W": {3, 4}, "layers.1.b": {3}}},
		"chain.v1":         {"* = [" + inner + ", {\"@layers\": \"Softmax.v1\"}]", []int{4}, []int{2}, shapes{"layers.0.W": {3, 4}, "layers.0.b": {3}, "layers.1.W": {2, 3}, "layers.1.b": {2}}},
		"SelfAttention.v1": {"heads = 2\ncausal = true", []int{3, 4}, []int{3, 4}, shapes{
			"layers.0.qkv.W": {12, 4}, "layers.0.qkv.b": {12}, "layers.0.out.W": {4, 4}, "layers.0.out.b": {4}}},
		"Images.v1":          {"channels = 3\nheight = 2\nwidth = 4", []int{24}, []int{3, 2, 4}, shapes{}},
		"Standardize.v1":     {"mean = 0\ndeviation = 2", []int{3}, []int{3}, shapes{}},
		"Conv2D.v1":          {"nO = 4\nsize = 3\nstride = 2\npadding = 1", []int{2, 5, 5}, []int{4, 3, 3}, shapes{"layers.0.W": {4, 2, 3, 3}, "layers.0.b": {4}}},
		"MaxPool2D.v1":       {"size = 3\nstride = 1\npadding = 1", []int{2, 5, 5}, []int{2, 5, 5}, shapes{}},
		"AvgPool2D.v1":       {"", []int{2, 5, 5}, []int{2, 1, 1}, shapes{}},
		"relu_activation.v1": {"", []int{2, 5}, []int{2, 5}, shapes{}},
		"Flatten.v1":         {"", []int{2, 5}, []int{10}, shapes{}},
		"Reshape.v1":         {"shape = [5, 2]", []int{10}, []int{5, 2}, shapes{}},
		"BatchNorm2D.v1": {"momentum = 1", []int{2, 5, 5}, []int{2, 5, 5}, shapes{
			"layers.0.G": {2}, "layers.0.b": {2}, "layers.0.running_mean": {2}, "layers.0.running_var": {2}}},
	}
	for name, c := range cases {
		params, made := declared(t, fmt.Sprintf("[model]\n@layers = %q\n%s\n", name, c.text), c.in, told(name, c.made))
		require.Equal(t, c.params, params, name)
		require.Equal(t, c.made, made, name)
	}
	for _, name := range catalog.New().Registry.Names("layers") {
		_, tested := cases[name]
		require.True(t, tested || name == "convnet.v1" || name == "relu_relu_softmax.v1", name)
	}
}

// told returns the output that a network is told: only one whose last layer needs it.
func told(name string, made []int) []int {
	if name == "chain.v1" {
		return made
	}
	return nil
}

// The networks of the seeds, spelled out, have the same parameters with the same bits.
func TestSpelledOutNetworks(t *testing.T) {
	for path, whole := range map[string]nn.Layer{"mnist": models.ReluReluSoftmax(128, .2), "convnet": models.ConvNet()} {
		cfg, err := config.Load("../../examples/"+path+"-layers.cfg", nil)
		require.NoError(t, err)
		l, err := catalog.New().Layers(cfg)
		require.NoError(t, err)
		want, got := built(t, whole), built(t, l)
		require.Equal(t, want.Values.Float32s(), got.Values.Float32s())
		for i, q := range want.List {
			require.Equal(t, q.Name, got.List[i].Name)
		}
	}
}

func built(t *testing.T, l nn.Layer) *nn.Params {
	m, err := nn.NewClassifier(cpu.New(cpu.Options{}), l, []int{784}, 10, 7)
	require.NoError(t, err)
	return m.Params()
}

// Initializers set what their names say: W of a Linear of 400 inputs and 100 outputs.
func TestInitializers(t *testing.T) {
	tested := map[string]bool{}
	for _, c := range []struct {
		name, args string
		least, max float64 // of the largest magnitude
		lo, hi     float64 // of the standard deviation
	}{
		{"zero_init.v1", "", 0, 0, 0, 0},
		{"uniform_init.v1", "", .099, .1, .057, .059},
		{"uniform_init.v1", `, "lo": 1, "hi": 1`, 1, 1, 0, 0},
		{"normal_init.v1", "", 0, 0, 0, 0},
		{"normal_init.v1", `, "mean": 0.5`, 1.5, 3, .49, .51},
		{"glorot_uniform_init.v1", "", .109, .1096, .063, .0636},
		{"glorot_normal_init.v1", "", .2, .4, .0625, .0640},
		{"he_uniform_init.v1", "", .122, .1225, .070, .0715},
		{"he_normal_init.v1", "", .2, .4, .070, .0715},
		{"lecun_uniform_init.v1", "", .086, .0867, .0495, .0505},
		{"lecun_normal_init.v1", "", .15, .3, .0495, .0505},
		{"fan_in_uniform_init.v1", "", .0499, .05, .0285, .0292},
	} {
		tested[c.name] = true
		l, err := catalog.New().Layers(parse(t, fmt.Sprintf("[model]\n@layers = \"Linear.v1\"\nnO = 100\ninit_W = {\"@initializers\": %q%s}\n", c.name, c.args)))
		require.NoError(t, err)
		b := nn.NewBuilder(1)
		_, err = l.Init([]int{400}, nil, b)
		require.NoError(t, err)
		p, err := b.Build(cpu.New(cpu.Options{}))
		require.NoError(t, err)
		most, deviation := spread(p.Lookup("layers.0.W").Values.Float32s())
		require.True(t, c.least <= most && most <= c.max+1e-7, "%s: %v", c.name, most)
		require.True(t, c.lo <= deviation && deviation <= c.hi, "%s: %v", c.name, deviation)
	}
	for _, name := range catalog.New().Registry.Names("initializers") {
		require.True(t, tested[name], name)
	}
}

// spread returns the largest magnitude of values, and their standard deviation.
func spread(values []float32) (most, deviation float64) {
	sum, squares, n := 0., 0., float64(len(values))
	for _, v := range values {
		most = max(most, math.Abs(float64(v)))
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	return most, math.Sqrt(max(0, squares/n-sum/n*sum/n))
}
