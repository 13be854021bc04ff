package gpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/gpu"
	"github.com/ringtrain/ringtrain/nn/models"
)

// The layers for documents, which have ids in host memory, give the results and gradients of
// nn/cpu, for batches of several sizes.
func TestDocuments(t *testing.T) {
	want := learnedDocuments(t, cpu.New(cpu.Options{}))
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		got := learnedDocuments(t, b)
		for i, v := range want {
			require.Less(t, distance(v, got[i]), 1e-4, "result %d", i)
		}
	})
}

// learnedDocuments returns the vectors of the tokens of two batches and the sum of their
// gradients.
func learnedDocuments(t *testing.T, b nn.Backend) [][]float32 {
	l := models.Tok2Vec{
		Embed:  models.MultiHashEmbed{Width: 8, Attrs: []string{"NORM", "SHAPE"}, Rows: []int{20, 10}},
		Encode: models.MaxoutWindowEncoder{Width: 8, Depth: 2, Window: 1, Pieces: 3},
	}.Layer(.2)
	builder := nn.NewBuilder(1)
	builder.TakesDocuments()
	_, err := l.Init([]int{2, 2}, nil, builder)
	require.NoError(t, err)
	params, err := builder.Build(b)
	require.NoError(t, err)
	var results [][]float32
	tokens := []int{5, 7}
	for step, lengths := range [][]int{{2, 0, 3}, {7}} {
		var ids []uint64
		for i := range 2 * tokens[step] {
			ids = append(ids, uint64(i%5)<<40+uint64(step))
		}
		y, back := l.Forward(&nn.Pass{Backend: b, Train: true, Random: nn.Stream{Seed: 3, Step: uint64(step)}}, nn.WideIDs(ids, 2, lengths))
		results = append(results, read(b, y.Data))
		back(y)
		b.Recycle()
	}
	return append(results, read(b, params.Grads))
}
