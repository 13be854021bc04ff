package ner

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/nn/text"
)

// tok2vec is the encoder of spaCy's default.cfg.
func tok2vec(dropout float32) nn.Layer {
	return models.Tok2Vec{
		Embed:  models.MultiHashEmbed{Width: 96, Attrs: []string{"NORM", "PREFIX", "SUFFIX", "SHAPE"}, Rows: []int{2000, 1000, 1000, 1000}},
		Encode: models.MaxoutWindowEncoder{Width: 96, Depth: 4, Window: 1, Pieces: 3},
	}.Layer(dropout)
}

var attrs = []text.Attr{text.Norm, text.Prefix, text.Suffix, text.Shape}

// A step of examples/ner.cfg: 8 documents of 20 words.
func BenchmarkStep(b *testing.B) {
	be := backend(b)
	p := Parser{Settings: Settings{Features: SixTokens, Hidden: 64, Pieces: 2, Drop: DefaultDrop}, Encoder: tok2vec(.1), Attrs: attrs, Moves: moves(b, "PER", "LOC", "ORG", "MISC")}
	r, err := New(be, p, 1)
	require.NoError(b, err)
	random := rand.New(rand.NewPCG(1, 2))
	var docs []*text.Doc
	words := 0
	for range 8 {
		d := &text.Doc{Annotated: true}
		for i := range 20 {
			d.Words = append(d.Words, strings.Repeat(string(rune('a'+random.IntN(20))), 1+random.IntN(8)))
			if i%5 == 3 {
				d.Entities = append(d.Entities, text.Span{Start: i - 1, End: i + 1, Label: "LOC"})
			}
		}
		docs, words = append(docs, d), words+d.Len()
	}
	batch := Batch{p.Documents(docs)}
	adam := optim.DefaultAdam()
	state := optim.NewState(be, r.Params(), adam)
	for step := 0; b.Loop(); step++ {
		be.Zero(r.Params().Grads)
		_, _, err := r.Learn(&nn.Pass{Backend: be, Train: true, Random: nn.Stream{Step: uint64(step)}, Zeroed: true}, batch)
		require.NoError(b, err)
		optim.Step(adam, be, r.Params(), state)
	}
	b.ReportMetric(float64(words*b.N)/b.Elapsed().Seconds(), "words/s")
}
