package catalog_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/data"
)

func parse(t *testing.T, text string) *config.Config {
	cfg, err := config.Parse("test.cfg", text, nil)
	require.NoError(t, err)
	return cfg
}

const model = "[model]\n@layers = \"relu_relu_softmax.v1\"\nhidden_width = 8\ndropout = 0.2\n"

func TestDefaultsEqualThinc(t *testing.T) {
	c := catalog.New()
	adam, err := c.Optimizer(parse(t, "[optimizer]\n@optimizers = \"Adam.v1\"\n"))
	require.NoError(t, err)
	got, want := adam.(optim.Adam), optim.DefaultAdam()
	require.Equal(t, want.UseAverages, got.UseAverages)
	require.Equal(t, want.L2IsWeightDecay, got.L2IsWeightDecay)
	require.Equal(t, want.Slots(), got.Slots())
	for _, pair := range [][2]optim.Schedule{{want.LearnRate, got.LearnRate}, {want.Beta1, got.Beta1}, {want.Beta2, got.Beta2}, {want.Eps, got.Eps}, {want.GradClip, got.GradClip}} {
		require.Equal(t, pair[0](3), pair[1](3))
	}
	require.Zero(t, got.L2(0))

	radam, err := c.Optimizer(parse(t, "[optimizer]\n@optimizers = \"RAdam.v1\"\nbeta1 = 0.8\n"))
	require.NoError(t, err)
	require.Equal(t, optim.DefaultRAdam().Slots(), radam.(optim.RAdam).Slots())
	require.Equal(t, []float64{.001, .8, .999, 1e-8, 0, 1}, []float64{
		radam.(optim.RAdam).LearnRate(3), radam.(optim.RAdam).Beta1(3), radam.(optim.RAdam).Beta2(3),
		radam.(optim.RAdam).Eps(3), radam.(optim.RAdam).L2(3), radam.(optim.RAdam).GradClip(3),
	})

	sgd, err := c.Optimizer(parse(t, "[optimizer]\n@optimizers = \"SGD.v1\"\nlearn_rate = 0.5\nuse_averages = false\n"))
	require.NoError(t, err)
	require.Equal(t, .5, sgd.(optim.SGD).LearnRate(0))
	require.Equal(t, 1., sgd.(optim.SGD).GradClip(0))
	require.Empty(t, sgd.Slots())

	layers, err := c.Layers(parse(t, model))
	require.NoError(t, err)
	require.NotNil(t, layers)
}

func TestMistakes(t *testing.T) {
	c := catalog.New()
	for want, text := range map[string]string{
		"test.cfg:1":                          "[optimizer]\n@layers = \"relu_relu_softmax.v1\"\nhidden_width = 1\ndropout = 0\n",
		"must name an optimizer":              "[optimizer]\n@layers = \"relu_relu_softmax.v1\"\nhidden_width = 1\ndropout = 0\n",
		"test.cfg:3":                          "[optimizer]\n@optimizers = \"Adam.v1\"\nlearn_rate = -1\n",
		"must be less than 1, not 1":          "[optimizer]\n@optimizers = \"Adam.v1\"\nbeta2 = 1\n",
		"beta2: must be less than 1, not 1.5": "[optimizer]\n@optimizers = \"RAdam.v1\"\nbeta2 = 1.5\n",
		"Adam.v1":                             "[optimizer]\n@optimizers = \"Adamm.v1\"\n",
		"[optimizer] is not":                  "[model]\n",
		"must be at least 0, not -":           "[optimizer]\n@optimizers = \"SGD.v1\"\nL2 = -0.1\n",
		"learn_rat":                           "[optimizer]\n@optimizers = \"SGD.v1\"\nlearn_rat = 0.1\n",
	} {
		_, err := c.Optimizer(parse(t, text))
		require.ErrorContains(t, err, want, "%s", text)
	}
}

func TestData(t *testing.T) {
	c := catalog.New()
	for name, want := range map[string]string{"foo": "unknown data", "mnist": "mnist:DIR", "mnist:": "mnist:DIR", "mnist:" + t.TempDir(): "train-images",
		"cifar": "cifar:DIR", "cifar:" + t.TempDir(): "data_batch_1.bin"} {
		_, err := c.Data(name, catalog.Options{})
		require.ErrorContains(t, err, want, name)
	}
	dir := t.TempDir()
	train, test := data.Generate(data.DigitsOptions{Train: 30, Test: 10, Side: 9})
	require.NoError(t, data.WriteMNIST(dir, train, test))
	s, err := c.Data("mnist:"+dir, catalog.Options{})
	require.NoError(t, err)
	require.Equal(t, catalog.Info{Name: "mnist:" + dir, Train: 30, Test: 10, Bytes: 40 * 82}, s.Info())
	images := s.(catalog.ImageDataset)
	require.Equal(t, catalog.ImageSize{Channels: 1, Height: 9, Width: 9}, images.Size())
	set, err := images.Open(context.Background())
	require.NoError(t, err)
	require.Equal(t, train.Pixels, set.Train.Pixels)

	digits, err := c.Data("digits", catalog.Options{})
	require.NoError(t, err)
	require.Equal(t, 20_000, digits.Info().Train)
}
