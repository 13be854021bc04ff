package catalog_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// entityCorpus writes a corpus of sentences and finds it as data to train on.
func entityCorpus(t *testing.T, c *catalog.Catalog) catalog.Dataset {
	dir := t.TempDir()
	for name, line := range map[string]string{"train.iob": "Ann|I-PER Lee|I-PER left|O Rome|I-LOC\n", "dev.iob": "Rome|I-LOC\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.Repeat(line, 3)), 0o600))
	}
	d, err := c.Data("ner:"+dir, catalog.Options{})
	require.NoError(t, err)
	return d
}

// The example has the parameters of spaCy's default.cfg, and labels decide how many moves there
// are.
func TestEntityProblem(t *testing.T) {
	c := catalog.New()
	cfg, err := config.Load("../../examples/ner.cfg", nil)
	require.NoError(t, err)
	p, err := c.Problem(cfg, entityCorpus(t, c))
	require.NoError(t, err)
	b, err := p.Declare()
	require.NoError(t, err)
	shapes := map[string][]int{}
	count := 0
	for _, q := range b.Declared() {
		n := 1
		for _, d := range q.Shape {
			n *= d
		}
		shapes[q.Name], count = q.Shape, count+n
	}
	require.Equal(t, []int{10, 64}, shapes["ner.upper.W"], "2 labels")
	require.Equal(t, []int{6, 64, 2, 64}, shapes["ner.lower.W"])
	require.Equal(t, 982_194-8*65, count, "spaCy has 982,194 for 4 labels, of which each has 4 moves of 65 weights")
	require.Len(t, shapes, 31)
	rows, err := p.Open(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]string{"labels": `["PER","LOC"]`}, rows.Notes(), "PER has more tokens")
	train, test := p.Rows()
	require.Equal(t, []int{3, 3}, []int{train, test})
	be := cpu.New(cpu.Options{})
	probe, err := p.Probe(be)
	require.NoError(t, err)
	require.NoError(t, probe.Learn(&nn.Pass{Backend: be, Train: true}, 4))
}

// Notes come from files that may be damaged.
func TestStoredEntities(t *testing.T) {
	c := catalog.New()
	cfg, err := config.Load("../../examples/ner.cfg", nil)
	require.NoError(t, err)
	notes := map[string]string{"config": cfg.Text(), "task": "ner.v1", "labels": `["PER", "LOC"]`}
	s, _, err := c.Stored(notes)
	require.NoError(t, err)
	_, err = s.Declare()
	require.NoError(t, err)
	require.NoError(t, s.Fits(entityCorpus(t, c)))
	digits, err := c.Data("digits", catalog.Options{})
	require.NoError(t, err)
	require.ErrorContains(t, s.Fits(digits), "finds entities in documents, but digits has none")
	for labels, want := range map[string]string{"": "do not describe the labels", "{}": "do not describe the labels", "[]": "the number of labels must be", `["A","A"]`: "appears twice"} {
		notes["labels"] = labels
		_, _, err := c.Stored(notes)
		require.ErrorContains(t, err, want)
	}
}

// Another network is a mistake in the config.
func TestEntityNetwork(t *testing.T) {
	c := catalog.New()
	cfg := parsed(t, "[task]\n@tasks = \"ner.v1\"\n[model]\n@layers = \"relu_relu_softmax.v1\"\nhidden_width = 3\ndropout = 0.1\n")
	p, err := c.Problem(cfg, entityCorpus(t, c))
	require.NoError(t, err)
	_, err = p.Declare()
	require.ErrorContains(t, c.Locate(cfg, err), `the task ner.v1 needs @architectures = "spacy.TransitionBasedParser.v2"`)
}
