package catalog_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// textOf writes a text file and finds it as data to train on.
func textOf(t *testing.T, text string, o catalog.Options) catalog.Dataset {
	path := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	d, err := catalog.New().Data("text:"+path, o)
	require.NoError(t, err)
	return d
}

// smallText is a config for rows of 3 characters, with vectors of 4.
const smallText = `[task]
@tasks = "language_model.v1"
context = 3

[model]
@layers = "chain.v1"

[model.*.characters]
@layers = "Embed.v1"
nO = 4

[model.*.next]
@layers = "with_array.v1"
layer = {"@layers": "Softmax.v1"}
`

func parsed(t *testing.T, text string) *config.Config {
	cfg, err := config.Parse("test.cfg", text, nil)
	require.NoError(t, err)
	return cfg
}

// The last part of the text is held out, and the vocabulary is that of the first.
func TestTextParts(t *testing.T) {
	c, d := catalog.New(), textOf(t, strings.Repeat("ab", 12)+"cd", catalog.Options{Holdout: .25})
	require.Equal(t, []int{19, 7}, []int{d.Info().Train, d.Info().Test})
	require.Equal(t, 104., d.Info().Bytes)
	require.Equal(t, "language_model.v1", d.Task())
	text := d.(catalog.TextDataset)
	require.Equal(t, "61-62", text.Vocabulary().String())
	train, test, sum, err := text.Open(t.Context(), text.Vocabulary())
	require.NoError(t, err)
	require.Len(t, train, 19)
	require.Equal(t, []int32{2, 1, 2, 1, 2, 0, 0}, test)
	p, err := c.Problem(parsed(t, smallText), d)
	require.NoError(t, err)
	rows := make([]int, 2)
	rows[0], rows[1] = p.Rows()
	require.Equal(t, []int{6, 2}, rows)
	require.Equal(t, catalog.Memory{Row: 24, Resident: 4*19 + 4*6}, p.Memory())
	opened, err := p.Open(t.Context())
	require.NoError(t, err)
	require.Equal(t, sum, opened.Sum())
	require.Equal(t, map[string]string{"vocabulary": "61-62", "context": "3"}, opened.Notes())
	other, err := p.Declare()
	require.NoError(t, err)
	declared, err := opened.Declare()
	require.NoError(t, err)
	require.Equal(t, declared.Len(), other.Len())
	require.Equal(t, []int{3, 4}, declared.Declared()[0].Shape, "a, b and unknown")

	two, err := c.Data(d.Info().Name, catalog.Options{Test: strings.TrimPrefix(d.Info().Name, "text:")})
	require.NoError(t, err)
	require.Equal(t, []int{26, 26}, []int{two.Info().Train, two.Info().Test})
	_, _, otherSum, err := two.(catalog.TextDataset).Open(t.Context(), text.Vocabulary())
	require.NoError(t, err)
	require.NotEqual(t, sum, otherSum)
}

func TestLanguageModelMistakes(t *testing.T) {
	c, d := catalog.New(), textOf(t, strings.Repeat("ab", 20), catalog.Options{})
	_, err := c.Problem(parsed(t, "[task]\n@tasks = \"image_classification.v1\"\n"), d)
	require.ErrorContains(t, err, "the task image_classification.v1 needs images; data \"text:")
	for want, model := range map[string]string{
		"only Embed.v1 takes ids":                    "@layers = \"relu_relu_softmax.v1\"\nhidden_width = 3\ndropout = 0.1\n",
		"the model needs output rows of shape [3 3]": "@layers = \"chain.v1\"\n[model.*.1]\n@layers = \"Embed.v1\"\nnO = 2\n[model.*.2]\n@layers = \"Softmax.v1\"\n",
	} {
		cfg := parsed(t, "[task]\n@tasks = \"language_model.v1\"\ncontext = 3\n[model]\n"+model)
		p, err := c.Problem(cfg, d)
		require.NoError(t, err)
		_, err = p.Declare()
		require.ErrorContains(t, c.Locate(cfg, err), want)
	}
	_, err = c.Data("text:", catalog.Options{})
	require.ErrorContains(t, err, "names no file")
}

// Notes come from files that may be damaged.
func TestStoredLanguageModel(t *testing.T) {
	notes := map[string]string{"config": smallText, "task": "language_model.v1", "vocabulary": "61-62", "context": "3"}
	c := catalog.New()
	s, _, err := c.Stored(notes)
	require.NoError(t, err)
	declared, err := s.Declare()
	require.NoError(t, err)
	require.Equal(t, []int{3, 4}, declared.Declared()[0].Shape)
	digits, err := c.Data("digits", catalog.Options{})
	require.NoError(t, err)
	require.ErrorContains(t, s.Fits(digits), "is for text, but digits has none")
	short, err := c.Test(textOf(t, "abb", catalog.Options{Holdout: .5}).Info().Name, true)
	require.NoError(t, err)
	require.NoError(t, s.Fits(short))
	examples, err := s.Open(t.Context(), short)
	require.NoError(t, err)
	_, err = examples.Task(cpu.New(cpu.Options{}))
	require.ErrorContains(t, err, "has only 3 characters, but the model is for rows of 3 and the character after them")
	g, err := s.(catalog.Generative).Generator(cpu.New(cpu.Options{}))
	require.NoError(t, err)
	_, err = g.Generate(t.Context(), catalog.GenerateOptions{Prompt: "a\xff"})
	require.ErrorContains(t, err, "not UTF-8")
	for _, change := range [][2]string{{"vocabulary", ""}, {"vocabulary", "62-61"}, {"context", ""}, {"context", "0"}, {"context", "99999999"}} {
		bad := map[string]string{}
		for k, v := range notes {
			bad[k] = v
		}
		bad[change[0]] = change[1]
		_, _, err := c.Stored(bad)
		require.ErrorContains(t, err, "do not describe the vocabulary and context", change)
	}
}

// The network of the example is models.CharTransformer, spelled out.
func TestExampleIsCharTransformer(t *testing.T) {
	cfg, err := config.Load("../../examples/chars.cfg", nil)
	require.NoError(t, err)
	s := nn.Sequence{Positions: 64, IDs: 90, Classes: 90}
	l, err := catalog.New().Layers(cfg)
	require.NoError(t, err)
	got, err := s.Declare(l, 1)
	require.NoError(t, err)
	want, err := s.Declare(models.CharTransformer(64, 4, 2), 1)
	require.NoError(t, err)
	require.Equal(t, want.Declared(), got.Declared())
}
