package gpu_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/gpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/ner"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/nn/text"
)

// A recogniser makes the same moves as on nn/cpu, and has its gradients.
func TestEntities(t *testing.T) {
	for _, s := range []ner.Settings{
		{Features: ner.SixTokens, Hidden: 8, Pieces: 2, Cut: 5, Drop: ner.DefaultDrop, LastForMissing: true},
		{Features: ner.ThreeTokens, Hidden: 8, Pieces: 3, Direct: true, Drop: ner.DefaultDrop},
		{Features: ner.SixTokens, Hidden: 6, Pieces: 1, Drop: .5},
	} {
		t.Run(fmt.Sprintf("%+v", s), func(t *testing.T) {
			host := cpu.New(cpu.Options{})
			want, found := learnedEntities(t, host, s)
			within(t, gpu.Options{}, func(b *gpu.Backend) {
				got, same := learnedEntities(t, b, s)
				require.Equal(t, found, same)
				require.Less(t, distance(want, got), 1e-4)
			})
			require.NoError(t, host.Close())
		})
	}
}

// learnedEntities returns the gradients of batches of several sizes, and the entities found.
func learnedEntities(t *testing.T, b nn.Backend, s ner.Settings) (gradients []float32, found [][]text.Span) {
	p, r := recognizer(t, b, s, 0)
	docs := p.Documents(sentences(6))
	b.Zero(r.Params().Grads)
	for step, batch := range [][]*ner.Document{docs[:3], docs[2:3], docs, nil, docs[:2]} {
		_, _, err := r.Learn(&nn.Pass{Backend: b, Train: true, Random: nn.Stream{Seed: 3, Step: uint64(step)}}, ner.Batch{Docs: batch})
		require.NoError(t, err)
	}
	gradients = read(b, r.Params().Grads)
	found, err := r.Predict(&nn.Pass{Backend: b}, docs)
	require.NoError(t, err)
	return gradients, found
}

// recognizer returns a small model, whose scores differ from the beginning.
func recognizer(t *testing.T, b nn.Backend, s ner.Settings, dropout float32) (ner.Parser, *ner.Recognizer) {
	m, err := ner.NewMoves([]string{"PER", "LOC"})
	require.NoError(t, err)
	p := ner.Parser{
		Settings: s, Moves: m, Attrs: []text.Attr{text.Norm, text.Shape},
		Encoder: models.Tok2Vec{
			Embed:  models.MultiHashEmbed{Width: 8, Attrs: []string{"NORM", "SHAPE"}, Rows: []int{20, 10}},
			Encode: models.MaxoutWindowEncoder{Width: 8, Depth: 1, Window: 1, Pieces: 3},
		}.Layer(dropout),
	}
	r, err := ner.New(b, p, 1)
	require.NoError(t, err)
	if upper := r.Params().Lookup("ner.upper.W"); upper != nil {
		values := make([]float32, upper.Values.Len())
		for i := range values {
			values[i] = float32(i%7)/8 - .375
		}
		b.Copy(upper.Values, values)
	}
	return p, r
}

// sentences returns documents with people and places, and an empty one.
func sentences(n int) (docs []*text.Doc) {
	r := rand.New(rand.NewPCG(1, 2))
	names, others := []string{"Ann", "Lee", "Rome", "Oslo"}, []string{"left", "she", "in", ","}
	for range n {
		d := &text.Doc{Annotated: true}
		for range 1 + r.IntN(9) {
			if r.IntN(2) == 0 {
				d.Words = append(d.Words, others[r.IntN(len(others))])
				continue
			}
			name, at := r.IntN(len(names)), len(d.Words)
			d.Words = append(d.Words, names[name])
			if name < 2 {
				d.Words = append(d.Words, "Smith")
			}
			d.Entities = append(d.Entities, text.Span{Start: at, End: len(d.Words), Label: []string{"PER", "LOC"}[name/2]})
		}
		docs = append(docs, d)
	}
	return append(docs, &text.Doc{Annotated: true})
}

// Each step starts from nn/cpu's weights, and has its loss. Trained independently, even two
// libraries for matrix products on one CPU soon have different losses, because rounding grows from
// step to step.
func TestEntitiesLockstep(t *testing.T) {
	steps := 30
	if os.Getenv("RINGTRAIN_REQUIRE_GPU") != "" {
		steps = 100
	}
	host := cpu.New(cpu.Options{})
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		s := ner.Settings{Features: ner.SixTokens, Hidden: 8, Pieces: 2}
		p, want := recognizer(t, host, s, 0)
		_, got := recognizer(t, b, s, 0)
		docs := p.Documents(sentences(20))
		learn := func(b nn.Backend, r *ner.Recognizer, step int) float32 {
			b.Zero(r.Params().Grads)
			loss, weight, err := r.Learn(&nn.Pass{Backend: b, Train: true, Zeroed: true}, ner.Batch{Docs: docs[step%4*5:][:5]})
			require.NoError(t, err)
			b.Scale(r.Params().Grads, 1/float32(weight))
			return read(b, loss)[0] / float32(weight)
		}
		adam := optim.DefaultAdam()
		state := optim.NewState(host, want.Params(), adam)
		var first, last float32
		for step := range steps {
			b.Copy(got.Params().Values, want.Params().Values.Float32s())
			last = learn(host, want, step)
			require.InDelta(t, last, learn(b, got, step), 1e-3, "step %d", step)
			require.Less(t, distance(want.Params().Grads.Float32s(), read(b, got.Params().Grads)), 1e-3, "step %d", step)
			optim.Step(adam, host, want.Params(), state)
			if step == 0 {
				first = last
			}
		}
		t.Logf("%d steps: the loss goes from %v to %v", steps, first, last)
	})
	require.NoError(t, host.Close())
}

// A recorder records the moves and their gradients as graphs, and repeats these. Only the
// repetitions give results.
type recorder struct {
	*gpu.Backend
	t     *testing.T
	nodes int // of all graphs
}

func (b *recorder) Transitions(batch nn.TransitionBatch) {
	b.repeat("moves", func() error { b.Backend.Transitions(batch); return nil }, batch.Units, batch.DScores, batch.Moves, batch.Totals)
}

func (b *recorder) TransitionsGrad(dproducts, dpad, dbias, dunits nn.Buffer, batch nn.TransitionBatch) {
	b.repeat("gradients", func() error { b.Backend.TransitionsGrad(dproducts, dpad, dbias, dunits, batch); return nil }, dproducts, dpad, dbias)
}

func (b *recorder) repeat(key string, fn func() error, results ...nn.Buffer) {
	before := make([][]float32, len(results))
	for i, v := range results {
		before[i] = read(b, v)
	}
	again, err := b.Record(key, fn)
	require.NoError(b.t, err)
	for i, v := range results {
		b.Copy(v, before[i])
	}
	require.NoError(b.t, again())
	n, err := b.Nodes(key)
	require.NoError(b.t, err)
	b.nodes += n
}

// The moves of a batch and their gradients can be part of a recording.
func TestEntitiesRecorded(t *testing.T) {
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		s := ner.Settings{Features: ner.SixTokens, Hidden: 8, Pieces: 2, Cut: 5, Drop: ner.DefaultDrop}
		want, found := learnedEntities(t, b, s)
		recorded := &recorder{Backend: b, t: t}
		got, same := learnedEntities(t, recorded, s)
		require.Equal(t, want, got)
		require.Equal(t, found, same)
		// A kernel for all moves of a batch; for their gradients a kernel, a zeroing and two sums.
		require.Equal(t, 4*1+1+4*4, recorded.nodes)
	})
}

// One launch makes all moves of a batch, and nothing returns to the host before the loss does.
func TestEntitiesCalls(t *testing.T) {
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		p, r := recognizer(t, b, ner.Settings{Features: ner.SixTokens, Hidden: 8, Pieces: 2, Drop: ner.DefaultDrop}, 0)
		calls := func(docs ...*text.Doc) gpu.Calls {
			batch := ner.Batch{Docs: p.Documents(docs)}
			learn := func() {
				_, _, err := r.Learn(&nn.Pass{Backend: b, Train: true}, batch)
				require.NoError(t, err)
			}
			learn() // allocates
			before := b.Calls()
			learn()
			after := b.Calls()
			return gpu.Calls{Kernels: after.Kernels - before.Kernels, Others: after.Others - before.Others, Copies: after.Copies - before.Copies}
		}
		docs := sentences(9)
		few, many := calls(docs[0], docs[1]), calls(slices.Clone(docs[2:4])...)
		require.Equal(t, few, many, "calls do not depend on the number of tokens")
	})
}
