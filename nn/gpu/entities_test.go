package gpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/gpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/ner"
	"github.com/ringtrain/ringtrain/nn/text"
)

// A recogniser, whose states are on the host, has the gradients of nn/cpu.
func TestEntities(t *testing.T) {
	want := learnedEntities(t, cpu.New(cpu.Options{}))
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		require.Less(t, distance(want, learnedEntities(t, b)), 1e-4)
	})
}

// learnedEntities returns the gradients of two batches.
func learnedEntities(t *testing.T, b nn.Backend) []float32 {
	m, err := ner.NewMoves([]string{"PER", "LOC"})
	require.NoError(t, err)
	p := ner.Parser{
		Settings: ner.Settings{Features: ner.SixTokens, Hidden: 8, Pieces: 2}, Moves: m, Attrs: []text.Attr{text.Norm, text.Shape},
		Encoder: models.Tok2Vec{
			Embed:  models.MultiHashEmbed{Width: 8, Attrs: []string{"NORM", "SHAPE"}, Rows: []int{20, 10}},
			Encode: models.MaxoutWindowEncoder{Width: 8, Depth: 1, Window: 1, Pieces: 3},
		}.Layer(.2),
	}
	r, err := ner.New(b, p, 1)
	require.NoError(t, err)
	upper := r.Params().Lookup("ner.upper.W") // all 0, so that moves would be chosen among equal scores
	values := make([]float32, upper.Values.Len())
	for i := range values {
		values[i] = float32(i%7)/8 - .375
	}
	b.Copy(upper.Values, values)
	docs := p.Documents([]*text.Doc{
		{Words: []string{"Ann", "Lee", "left", "Rome"}, Annotated: true, Entities: []text.Span{{Start: 0, End: 2, Label: "PER"}, {Start: 3, End: 4, Label: "LOC"}}},
		{Words: []string{"She", "slept"}, Annotated: true},
	})
	b.Zero(r.Params().Grads)
	for step, batch := range [][]*ner.Document{docs, docs[1:], docs} {
		_, _, err := r.Learn(&nn.Pass{Backend: b, Train: true, Random: nn.Stream{Seed: 3, Step: uint64(step)}}, ner.Batch{Docs: batch})
		require.NoError(t, err)
	}
	_, err = r.Predict(&nn.Pass{Backend: b}, docs)
	require.NoError(t, err)
	return read(b, r.Params().Grads)
}
