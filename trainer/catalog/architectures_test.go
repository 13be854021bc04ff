package catalog_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/trainer/catalog"
)

// The block of spaCy's default.cfg, as it is.
const spacyTok2Vec = `[components]

[components.tok2vec]
factory = "tok2vec"

[components.tok2vec.model]
@architectures = "spacy.Tok2Vec.v2"

[components.tok2vec.model.embed]
@architectures = "spacy.MultiHashEmbed.v2"
width = ${components.tok2vec.model.encode.width}
attrs = ["NORM","PREFIX","SUFFIX","SHAPE"]
rows = [2000,1000,1000,1000]
include_static_vectors = false

[components.tok2vec.model.encode]
@architectures = "spacy.MaxoutWindowEncoder.v2"
width = 96
depth = 4
window_size = 1
maxout_pieces = 3
`

func TestTok2VecFromConfig(t *testing.T) {
	made, err := catalog.New().Registry.Resolve(parse(t, spacyTok2Vec), "components.tok2vec.model")
	require.NoError(t, err)
	tok2vec := made.(models.Tok2Vec)
	require.Equal(t, models.Tok2Vec{
		Embed:  models.MultiHashEmbed{Width: 96, Attrs: []string{"NORM", "PREFIX", "SUFFIX", "SHAPE"}, Rows: []int{2000, 1000, 1000, 1000}},
		Encode: models.MaxoutWindowEncoder{Width: 96, Depth: 4, Window: 1, Pieces: 3},
	}, tok2vec)
	b := nn.NewBuilder(1)
	b.TakesDocuments()
	out, err := tok2vec.Layer(.1).Init([]int{4, 2}, nil, b)
	require.NoError(t, err)
	require.Equal(t, []int{96}, out)
	for i, shape := range [][]int{{2000, 96}, {1000, 96}, {1000, 96}, {1000, 96}, {96, 3, 384}, {96, 3}, {96}, {96}, {96, 3, 288}} {
		require.Equal(t, shape, b.Declared()[i].Shape)
	}
	require.Len(t, b.Declared(), 4+4+4*4)
}

func TestTok2VecMistakes(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"width = 96", "width = 0", "test.cfg:11: components.tok2vec.model.embed.width: must be from 1 to 2147483647, not 0"},
		{"width = ${components.tok2vec.model.encode.width}", "width = 64", "encode: must have width 64, as embed, not 96"},
		{`"SHAPE"]`, `"TAG"]`, `attrs: must list names of attributes such as "NORM", not`},
		{`"SHAPE"]`, `7]`, `attrs: must list names of attributes such as "NORM", not`},
		{`["NORM","PREFIX","SUFFIX","SHAPE"]`, "[]", "attrs: the list is empty"},
		{"[2000,1000,1000,1000]", "[2000]", "rows: must have a number for each of the 4 attributes, not 1"},
		{"[2000,1000,1000,1000]", "[2000,1000,1000,0]", "rows: must list whole numbers, at least 1, not"},
		{"static_vectors = false", "static_vectors = true", "include_static_vectors: must be false"},
		{"spacy.MultiHashEmbed.v2", "spacy.MultiHashEmbed.v1", `did you mean "spacy.MultiHashEmbed.v2"?`},
		{"depth = 4", "depth = -1", "depth: must be from 1 to 2147483647, not -1"},
	} {
		require.Contains(t, spacyTok2Vec, c.from)
		_, err := catalog.New().Registry.Resolve(parse(t, strings.Replace(spacyTok2Vec, c.from, c.to, 1)), "components.tok2vec.model")
		require.ErrorContains(t, err, c.want)
	}
}
