package catalog_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// mistake returns the error of a network for images of 28 by 28 pixels.
func mistake(t *testing.T, c *catalog.Catalog, text string) error {
	t.Helper()
	cfg := parse(t, text)
	d, err := c.Data("digits", catalog.Options{})
	require.NoError(t, err)
	p, err := c.Problem(cfg, d)
	if err == nil {
		_, err = p.Declare()
	}
	return c.Locate(cfg, err)
}

// A mistake in a network names the line, the path of the layer in the config, and the
// arguments.
func TestNetworkMistakes(t *testing.T) {
	linear := `{"@layers": "Linear.v1", "nO": 3}`
	example, err := os.ReadFile("../../examples/ner.cfg")
	require.NoError(t, err)
	_, parser, found := strings.Cut(string(example), "[model]")
	require.True(t, found)
	parser, _, _ = strings.Cut("[model]"+parser, "[optimizer")
	for want, text := range map[string]string{
		// The shapes do not fit.
		"test.cfg:4: model.*.b0: Conv2D.v1: rows of input have shape [784], but must be images (channels, height, width); use Images.v1 to convert plain rows":                                 chain("Conv2D.v1 nO = 3; size = 3", "Softmax.v1"),
		"test.cfg:7: model.*.b1: MaxPool2D.v1: a window of 29 by 29 does not fit into images of 28 by 28 with padding 0":                                                                       chain("Images.v1", "MaxPool2D.v1 size = 29", "Softmax.v1"),
		"test.cfg:5: model.*.b0.channels: Images.v1: cannot read rows of shape [784] as images of shape [3 16 16]; set channels, height and width to match":                                    chain("Images.v1 channels = 3", "Softmax.v1"),
		"test.cfg:4: model.*.b0: SelfAttention.v1: rows of input have shape [784], but must be positions (T, width)":                                                                           chain("SelfAttention.v1", "Softmax.v1"),
		"test.cfg:8: model.*.b1.heads: SelfAttention.v1: heads must be at least 1 and divide the width, not 3; rows of shape [28 28] have width 28":                                            chain("Reshape.v1 shape = [28, 28]", "SelfAttention.v1 heads = 3", "Softmax.v1"),
		"test.cfg:5: model.*.b0.shape: Reshape.v1: rows of input have shape [784], which is 784 elements; shape is [28 27], and must have as many":                                             chain("Reshape.v1 shape = [28, 27]", "Softmax.v1"),
		"test.cfg:5: model.*.b0.nI: Linear.v1: nI is 100, but rows of input have shape [784], which is 784 elements":                                                                           chain("Linear.v1 nI = 100; nO = 10", "Softmax.v1"),
		"test.cfg:8: model.*.b1.nO: Softmax.v1: nO is 9 but the model needs 10 outputs":                                                                                                        chain("Relu.v1 nO = 8", "Softmax.v1 nO = 9"),
		"test.cfg:4: model.*.b0: with_array.v1: rows of input have shape [784], but with_array.v1 needs positions and at least one more dimension":                                             chain("with_array.v1 layer = "+linear, "Softmax.v1"),
		"test.cfg:5: model.*.b0.layer.nO: Linear.v1: nO is 3 but the model needs 784 outputs":                                                                                                  chain("residual.v1 layer = "+linear, "Softmax.v1"),
		"test.cfg:4: model.*.b0: add.v1: model.*.b0.*.1 returns rows of shape [784], but model.*.b0.layer2 returns [3]; only equal shapes can be added":                                        chain("add.v1 layer2 = "+linear+"; * = ["+linear+`, {"@layers": "Flatten.v1"}]`, "Softmax.v1"),
		"test.cfg:4: model.*.b0: HashEmbed.v1: rows of input have shape [784], but HashEmbed.v1 takes the ids of tokens (columns, 2); only documents have them":                                chain("HashEmbed.v1 nO = 3; nV = 9", "Softmax.v1"),
		"test.cfg:4: model.*.b0: expand_window.v1: expand_window.v1 lets rows see their neighbours, so rows must be the tokens of documents, but the model has independent rows; leave it out": chain("expand_window.v1", "Softmax.v1"),
		"test.cfg:4: model.*.b0: with_array.v1: with_array.v1 with pad lets rows see their neighbours, so rows":                                                                                chain("with_array.v1 pad = 1; layer = "+linear, "Softmax.v1"),
		// The order is wrong, or something is missing.
		"test.cfg:4: model.*.b0: Relu.v1: nO is not set; set it, because only the last layer can infer it from the data":                                    chain("Relu.v1", "Softmax.v1"),
		"test.cfg:5: model.*.b0.nO: Relu.v1: nO is not set; set it, because only the last layer can infer it from the data":                                 chain("Relu.v1 nO = null", "Softmax.v1"),
		"test.cfg:7: model.*.b1: Embed.v1: Embed.v1 follows another layer, but takes the ids of a batch; put it first":                                      chain("Dropout.v1", "Embed.v1 nO = 3; nV = 5", "Softmax.v1"),
		"test.cfg:4: model.*.b0: Embed.v1: Embed.v1 takes int32 ids, but the rows hold float32":                                                             chain("Embed.v1 nO = 3; nV = 5", "Softmax.v1"),
		"test.cfg:4: model.*.b0: Softmax.v1: Softmax.v1 must be the last layer, because its gradient is that of a loss; use Linear.v1 here, or put it last": chain("Softmax.v1 nO = 3", "Softmax.v1"),
		"test.cfg:7: model.*.b1: Dropout.v1: the last layer is Dropout.v1, but a classifier must end in Softmax.v1; add one":                                chain("Softmax.v1", "Dropout.v1"),
		"test.cfg:4: model.*.b0: chain.v1: there are no layers in it; add at least one":                                                                     chain("chain.v1 * = []", "Softmax.v1"),
		"test.cfg:2: model: Linear.v1: the last layer is Linear.v1, but a classifier must end in Softmax.v1; add one":                                       "[model]\n@layers = \"Linear.v1\"\n",
		// A network with @architectures.
		"test.cfg:2: model: spacy.TransitionBasedParser.v2: the last layer is spacy.TransitionBasedParser.v2, but a classifier must end in Softmax.v1; add one": parser,
		"test.cfg:2: model: layers -> chain.v1 needs at least one positional argument, a layer (@layers); add a section [model.*.name]":                         chain(),
		"test.cfg:4: model.*.b0: layers -> residual.v1 needs the argument \"layer\", a layer (@layers); add a section [model.*.b0.layer]":                       chain("residual.v1", "Softmax.v1"),
		"test.cfg:4: model.*.b0: layers -> clone.v1 needs the argument \"orig\", a layer (@layers); add a section [model.*.b0.orig]":                            chain("clone.v1 n = 2", "Softmax.v1"),
		// An argument is wrong.
		"test.cfg:6: model.*.b0.n: must be at least 1, not 0":                                                                          chain("clone.v1 orig = "+linear+"; n = 0", "Softmax.v1"),
		"test.cfg:5: model.*.b0.orig: the config calls more than 65536 functions; make it smaller":                                     chain("clone.v1 orig = "+linear+"; n = 70000", "Softmax.v1"),
		"test.cfg:5: model.*.b0.layer: expected a layer (@layers), got the string \"Linear.v1\"":                                       chain("residual.v1 layer = Linear.v1", "Softmax.v1"),
		"test.cfg:5: model.*.b0.layer: expected a layer (@layers), got a Go value of type nn.Initializer":                              chain(`residual.v1 layer = {"@initializers": "zero_init.v1"}`, "Softmax.v1"),
		"test.cfg:5: model.*.b0.init_W: there is no \"he_norm_init.v1\" in registry initializers; did you mean \"he_normal_init.v1\"?": chain(`Relu.v1 init_W = {"@initializers": "he_norm_init.v1"}; nO = 4`, "Softmax.v1"),
		"test.cfg:5: model.*.b0.init_W: expected an initializer (@initializers), got 0.5":                                              chain("Relu.v1 init_W = 0.5; nO = 4", "Softmax.v1"),
		"test.cfg:5: model.*.b0.init_W.hi: must be at least lo (1), not 0":                                                             chain(`Relu.v1 init_W = {"@initializers": "uniform_init.v1", "lo": 1, "hi": 0}; nO = 4`, "Softmax.v1"),
		"test.cfg:5: model.*.b0.init_W.mean: the standard deviation must be at least 0, not -1":                                        chain(`Relu.v1 init_W = {"@initializers": "normal_init.v1", "mean": -1}; nO = 4`, "Softmax.v1"),
		"test.cfg:5: model.*.b0.nO: must be from 1 to 2147483647, not 0":                                                               chain("Relu.v1 nO = 0", "Softmax.v1"),
		"test.cfg:5: model.*.b0.dropout: must be at least 0 and less than 1, not 1":                                                    chain("Relu.v1 dropout = 1; nO = 4", "Softmax.v1"),
		"test.cfg:5: model.*.b0.rate: must be at least 0 and less than 1, not -0.1":                                                    chain("Dropout.v1 rate = -0.1", "Softmax.v1"),
		"test.cfg:5: model.*.b0.nP: must be from 1 to 2147483647, not 0":                                                               chain("Maxout.v1 nP = 0; nO = 4", "Softmax.v1"),
		"test.cfg:5: model.*.b0.eps: must be greater than 0 and a float32, not 0":                                                      chain("LayerNorm.v1 eps = 0", "Softmax.v1"),
		"test.cfg:5: model.*.b0.deviation: must be greater than 0":                                                                     chain("Standardize.v1 deviation = -1; mean = 0", "Softmax.v1"),
		"test.cfg:5: model.*.b0.momentum: must be at most 1, not 2":                                                                    chain("BatchNorm2D.v1 momentum = 2", "Softmax.v1"),
		"test.cfg:5: model.*.b0.padding: must be at least 0, not -1":                                                                   chain("AvgPool2D.v1 padding = -1", "Softmax.v1"),
		"test.cfg:5: model.*.b0.column: Embed.v1: column is 2, but rows of input have no columns; leave it out":                        chain("Embed.v1 column = 2; nO = 3", "Softmax.v1"),
		"test.cfg:5: model.*.b0.pad: must be at least 0, not -1":                                                                       chain("with_array.v1 pad = -1; layer = "+linear, "Softmax.v1"),
		"test.cfg:5: model.*.b0.shape: number 2 must be a whole number, at least 1, not 0.5":                                           chain("Reshape.v1 shape = [28, 0.5]", "Softmax.v1"),
		"test.cfg:5: model.*.b0.shape: the list is empty":                                                                              chain("Reshape.v1 shape = []", "Softmax.v1"),
		"test.cfg:4: model.*.b0: layers -> Conv2D.v1 needs the argument \"size\", a whole number":                                      chain("Conv2D.v1 nO = 4", "Softmax.v1"),
	} {
		err := mistake(t, catalog.New(), text)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
		require.ErrorAs(t, err, new(*config.Error))
	}
}

// Layers in sections, in copies and behind references have their own lines.
func TestNestedMistakes(t *testing.T) {
	const text = `[model]
@layers = "chain.v1"
[model.*.blocks]
@layers = "clone.v1"
n = 2
[model.*.blocks.orig]
@layers = "concatenate.v1"
[model.*.blocks.orig.*.left]
@layers = "Relu.v1"
nO = 2
[model.*.blocks.orig.*.right]
@layers = "chain.v1"
[model.*.blocks.orig.*.right.*.one]
@layers = "Relu.v1"
nO = 4
normalize = true
[model.*.blocks.orig.*.right.*.two]
@layers = "Linear.v1"
nI = 4
nO = 3
[model.*.shared]
@layers = "Relu.v1"
nO = 4
[model.*.out]
@layers = "Softmax.v1"
`
	c := catalog.New()
	require.NoError(t, mistake(t, c, text))
	change := func(old, new string) string {
		require.Contains(t, text, old)
		return strings.Replace(text, old, new, 1)
	}
	require.EqualError(t, mistake(t, c, change("nI = 4", "nI = 5")),
		"test.cfg:19: model.*.blocks.orig.*.right.*.two.nI: Linear.v1: nI is 5, but rows of input have shape [4], which is 4 elements")
	require.EqualError(t, mistake(t, c, change("nO = 2\n", "")),
		"test.cfg:9: model.*.blocks.orig.*.left: Relu.v1: nO is not set; set it, because only the last layer can infer it from the data")
	require.EqualError(t, mistake(t, c, change(`@layers = "Linear.v1"`+"\nnI = 4\nnO = 3", `@layers = "Images.v1"`+"\nchannels = 4")),
		"test.cfg:7: model.*.blocks.orig: concatenate.v1: model.*.blocks.orig.*.right returns rows of shape [4 1 1], but model.*.blocks.orig.*.left returns [2]; they may differ only in the first dimension")

	// The second copy does not fit what the first returns.
	require.EqualError(t, mistake(t, c, chain(`clone.v1 orig = {"@layers": "Linear.v1", "nI": 784, "nO": 3}; n = 2`, "Softmax.v1")),
		"test.cfg:5: model.*.b0.orig.nI: Linear.v1: nI is 784, but rows of input have shape [3], which is 3 elements")

	// A layer that is a reference to a section has the line of the section.
	require.EqualError(t, mistake(t, c, "[shared]\n@layers = \"Linear.v1\"\nnO = 3\n"+chain("residual.v1 layer = ${shared}", "Softmax.v1")),
		"test.cfg:3: model.*.b0.layer.nO: Linear.v1: nO is 3 but the model needs 784 outputs")
}

// Locate leaves other errors alone, and does not lose its way in layers of other programs.
func TestLocateOtherErrors(t *testing.T) {
	c := catalog.New()
	cfg := parse(t, chain("Softmax.v1"))
	require.NoError(t, c.Locate(cfg, nil))
	other := errors.New("other")
	require.Equal(t, other, c.Locate(cfg, other))
	located := &config.Error{Msg: "x", Err: &nn.LayerError{}}
	require.Equal(t, error(located), c.Locate(cfg, located))
	lost := &nn.LayerError{Path: "layers.0", Msg: "x"}
	require.Equal(t, error(lost), c.Locate(parse(t, "[training]\n"), lost))
	for path, want := range map[string]string{
		"model": "test.cfg:2: model", "layers.0": "test.cfg:4: model.*.b0", "layers.7": "test.cfg:2: model", "layers.-1": "test.cfg:2: model",
		"layers.x": "test.cfg:2: model", "layers": "test.cfg:2: model", "other.0": "test.cfg:2: model", "layers.0.layers.0.norm": "test.cfg:4: model.*.b0", "": "test.cfg:2: model",
	} {
		err := c.Locate(cfg, fmt.Errorf("so: %w", &nn.LayerError{Path: path, Msg: "Out and layers.9 of *nn.Softmax"}))
		require.ErrorContains(t, err, want+": ", path)
		require.ErrorContains(t, err, ": nO and layers.9 of ", path)
		require.ErrorAs(t, err, new(*nn.LayerError))
	}
}
