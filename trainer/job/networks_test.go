package job

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// networks are chains for images of 8 by 8, and one for text. Together they have every
// layer.
var networks = map[string][]string{
	"perceptron": {
		`"Standardize.v1", "mean": 0.2, "deviation": 0.4`, `"Linear.v1", "nO": 9`, `"Gelu.v1", "nO": 8, "normalize": true, "dropout": 0.1`,
		`"Maxout.v1", "nO": 6, "nP": 2, "dropout": 0.1`, `"LayerNorm.v1"`, `"Dropout.v1", "rate": 0.1`, `"Relu.v1", "nO": 7, "normalize": true`, `"Softmax.v1"`,
	},
	"branches": {
		`"concatenate.v1", "*": [{"@layers": "Relu.v1", "nO": 5, "dropout": 0.2}, {"@layers": "add.v1", "*": [{"@layers": "Linear.v1", "nO": 3}, {"@layers": "Gelu.v1", "nO": 3}]}]`,
		`"clone.v1", "n": 2, "orig": {"@layers": "residual.v1", "layer": {"@layers": "Gelu.v1", "nO": 8}}`,
		`"Softmax.v1", "init_W": {"@initializers": "uniform_init.v1"}`,
	},
	"residual": {
		`"Images.v1"`, `"Conv2D.v1", "nO": 4, "size": 3, "padding": 1`, `"BatchNorm2D.v1"`, `"relu_activation.v1"`, `"MaxPool2D.v1", "size": 2`,
		`"residual.v1", "layer": {"@layers": "chain.v1", "*": [{"@layers": "Conv2D.v1", "nO": 4, "size": 3, "padding": 1}, {"@layers": "BatchNorm2D.v1"}]}`,
		`"AvgPool2D.v1", "size": 2`, `"Flatten.v1"`, `"Softmax.v1"`,
	},
	"table": {
		`"concatenate.v1", "*": [{"@layers": "Embed.v1", "column": 1, "nO": 3, "dropout": 0.1}, {"@layers": "Columns.v1", "columns": [2, 0]}]`,
		`"Relu.v1", "nO": 6`, `"Softmax.v1"`,
	},
	"text": {
		`"Embed.v1", "nO": 6, "dropout": 0.1`, `"Positions.v1", "initializer": {"@initializers": "normal_init.v1", "mean": 0.2}`, `"SelfAttention.v1", "heads": 3, "causal": true`,
		`"with_array.v1", "layer": {"@layers": "Softmax.v1"}`,
	},
	"transformer": {
		`"Reshape.v1", "shape": [8, 8]`, `"Positions.v1"`,
		`"residual.v1", "layer": {"@layers": "chain.v1", "*": [{"@layers": "with_array.v1", "layer": {"@layers": "LayerNorm.v1"}}, {"@layers": "SelfAttention.v1", "heads": 2, "causal": true}]}`,
		`"residual.v1", "layer": {"@layers": "with_array.v1", "layer": {"@layers": "chain.v1", "*": [{"@layers": "Gelu.v1", "nO": 12, "dropout": 0.1}, {"@layers": "Linear.v1", "nO": 8}]}}`,
		`"Softmax.v1"`,
	},
}

// Networks built from configs train with the same bits on any number of workers, and
// resume exactly.
func TestNetworksFromConfigs(t *testing.T) {
	for name, layers := range networks {
		t.Run(name, func(t *testing.T) {
			f := tinySpec(t)
			text := tinyConfig + "[model]\n@layers = \"chain.v1\"\n[model.*]\n"
			for i, l := range layers {
				text += fmt.Sprintf("at%d = {\"@layers\": %s}\n", i, l)
			}
			if name == "table" {
				rows := "size,colour,weight,kind\n"
				for i := range 60 {
					rows += fmt.Sprintf("%d,%c,%d,%c\n", i%7, 'a'+i%3, i%5, 'x'+i%2)
				}
				path := filepath.Join(t.TempDir(), "table.csv")
				require.NoError(t, os.WriteFile(path, []byte(rows), 0o600))
				f.Data, f.Options.Target = "csv:"+path, "kind"
			}
			if name == "text" {
				path := filepath.Join(t.TempDir(), "text")
				require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("Even a short text has many characters. ", 20)), 0o600))
				f.Data = "text:" + path
				text += "[task]\n@tasks = \"language_model.v1\"\ncontext = 8\n"
			}
			require.NoError(t, os.WriteFile(f.Config, []byte(text+"[optimizer]\n@optimizers = \"Adam.v1\"\n"), 0o600))
			train := func(workers, accumulate, steps int, s Saving) string {
				f := f
				f.Batch, f.Workers, f.Accumulate, f.Steps, f.Saving = 3, workers, accumulate, steps, s
				return resultOf(t, run(t, f)).WeightsSHA256
			}
			alone := train(1, 4, 4, Saving{})
			require.Equal(t, alone, train(4, 1, 4, Saving{}))
			require.NotEqual(t, alone, train(1, 1, 4, Saving{}))
			for _, workers := range []int{1, 4} {
				half := Saving{Dir: t.TempDir()}
				train(workers, 4/workers, 2, half)
				require.Equal(t, alone, train(workers, 4/workers, 4, Saving{Resume: half.Dir}))
			}
		})
	}
}

// Every layer of the catalog is in one of the networks, but for whole networks, and for
// layers whose rows are the tokens of documents.
func TestNetworksHaveEveryLayer(t *testing.T) {
	used := []string{"chain.v1", "convnet.v1", "relu_relu_softmax.v1", "HashEmbed.v1", "expand_window.v1"}
	for _, layers := range networks {
		for _, m := range regexp.MustCompile(`"(\w+\.v\d)"`).FindAllStringSubmatch(fmt.Sprint(layers), -1) {
			used = append(used, m[1])
		}
	}
	for _, name := range catalog.New().Registry.Names("layers") {
		require.True(t, slices.Contains(used, name), name)
	}
}

// The example configs that spell a network out train the weights of those that name it.
// Softmax.v1 alone is a chain of one.
func TestSpelledOutNetworksTrainTheSame(t *testing.T) {
	softmax := func(model string) string {
		path := filepath.Join(t.TempDir(), "softmax.cfg")
		require.NoError(t, os.WriteFile(path, []byte(model+"[optimizer]\n@optimizers = \"SGD.v1\"\n"), 0o600))
		return path
	}
	for _, pair := range [][2]string{
		{"../../examples/mnist.cfg", "../../examples/mnist-layers.cfg"},
		{"../../examples/convnet.cfg", "../../examples/convnet-layers.cfg"},
		{softmax("[model]\n@layers = \"Softmax.v1\"\n"), softmax("[model]\n@layers = \"chain.v1\"\n[model.*.out]\n@layers = \"Softmax.v1\"\n")},
	} {
		for _, workers := range []int{1, 2} {
			var sums []string
			for _, path := range pair {
				f := tinySpec(t)
				f.Config, f.Workers, f.Batch, f.Steps = path, workers, 8, 5
				sums = append(sums, resultOf(t, run(t, f)).WeightsSHA256)
			}
			require.Equal(t, sums[0], sums[1], pair)
		}
	}
}

// The blocks in docs/networks.md are those of the example configs, and its error is what
// the command says.
func TestNetworksGuide(t *testing.T) {
	page, err := os.ReadFile("../../docs/networks.md")
	require.NoError(t, err)
	var examples string
	for _, name := range []string{"mnist-layers", "convnet-layers", "resnet", "transformer"} {
		path := "../../examples/" + name + ".cfg"
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		examples += string(text)
		f := tinySpec(t)
		f.Config, f.Data = path, "digits"
		_, err = f.Describe()
		require.NoError(t, err)
	}
	blocks := regexp.MustCompile(`(?m)^    \[model.*\n(    .*\n)*`).FindAllString(string(page), -1)
	require.Len(t, blocks, 19)
	for _, block := range blocks {
		require.Contains(t, examples, strings.TrimPrefix(strings.ReplaceAll("\n"+block, "\n    ", "\n"), "\n"))
	}
	f := tinySpec(t)
	f.Config, f.Data = "../../examples/convnet-layers.cfg", "digits"
	f.Overrides = []config.Override{{Path: "model.*.images.@layers", Raw: "Flatten.v1"}}
	_, err = f.Describe()
	require.Error(t, err)
	require.Contains(t, strings.Join(strings.Fields(string(page)), " "), strings.TrimPrefix(err.Error(), "../../"))
}
