package ner

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/nntest"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/nn/text"
)

// parser returns a Parser of an encoder that knows only the word itself.
func parser(t require.TestingT, s Settings, labels ...string) Parser {
	return Parser{Settings: s, Encoder: &nn.HashEmbed{Out: 8, Rows: 50, Seed: 8}, Attrs: []text.Attr{text.Orth}, Moves: moves(t, labels...)}
}

func backend(t testing.TB) nn.Backend {
	b := cpu.New(cpu.Options{})
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// favour makes r prefer moves in this order, whatever the vectors are, so that small changes
// of parameters change no decisions.
func favour(t *testing.T, b nn.Backend, r *Recognizer, names ...string) {
	shift := make([]float32, r.moves.Len())
	for i := range shift {
		for order, name := range names {
			if r.moves.Name(i) == name {
				shift[i] = 5 * float32(len(names)-order)
			}
		}
	}
	require.NotNil(t, r.network.upB)
	b.Copy(r.network.upB.Values, shift)
	weights := make([]float32, r.network.upW.Values.Len())
	for i := range weights {
		weights[i] = float32(math.Sin(float64(i))) / 16
	}
	b.Copy(r.network.upW.Values, weights)
}

func TestGradients(t *testing.T) {
	for _, s := range []Settings{
		{Features: ThreeTokens, Hidden: 6, Pieces: 2, Drop: DefaultDrop},
		{Features: SixTokens, Hidden: 6, Pieces: 3, Drop: .5},
		{Features: SixTokens, Hidden: 6, Pieces: 2, Cut: 3},
		{Features: ThreeTokens, Hidden: 6, Pieces: 1},
	} {
		for _, train := range []bool{false, true} {
			t.Run(fmt.Sprintf("%+v train %v", s, train), func(t *testing.T) {
				b, p := backend(t), parser(t, s, "A", "B")
				r, err := New(b, p, 1)
				require.NoError(t, err)
				favour(t, b, r, "B-A", "I-A", "O")
				batch := Batch{p.Documents([]*text.Doc{
					tagged(t, "a/U-A b/B-B c/I-B d/L-B e/O"), {}, tagged(t, "f/O"), {Words: []string{"raw"}}, tagged(t, "c/O d/B-A a/L-A f/- g/U-B h/O"),
				})}
				pass := &nn.Pass{Backend: b, Train: train, Random: nn.Stream{Seed: 1, Step: 2, First: 3, Stride: 4}}
				nntest.CheckModelGradients(t, r, pass, batch)
				_, weight, err := r.Learn(pass, batch)
				require.NoError(t, err)
				require.Equal(t, 12, weight, "tokens of annotated documents")
			})
		}
	}
}

// Without an upper layer the units are the scores.
func TestGradientsOfDirectScores(t *testing.T) {
	b, p := backend(t), parser(t, Settings{Features: ThreeTokens, Hidden: 6, Pieces: 2, Direct: true}, "A")
	r, err := New(b, p, 1)
	require.NoError(t, err)
	require.Nil(t, r.Params().Lookup("ner.upper.W"))
	shift := make([]float32, 2*r.moves.Len())
	for i := range r.moves.Len() {
		shift[2*i] = float32(map[string]int{"B-A": 20, "I-A": 15, "O": 5}[r.moves.Name(i)])
		shift[2*i+1] = shift[2*i] - .1
	}
	b.Copy(r.network.b.Values, shift)
	batch := Batch{p.Documents([]*text.Doc{tagged(t, "a/U-A b/B-A c/L-A d/O")})}
	nntest.CheckModelGradients(t, r, &nn.Pass{Backend: b, Train: true}, batch)
}

// spaCy's own test: two sentences, fifty updates.
func TestOverfitting(t *testing.T) {
	b, p := backend(t), parser(t, Settings{Hidden: 64, Pieces: 2, Drop: DefaultDrop}, "PERSON", "LOC")
	p.Attrs, p.Encoder = attrs, tok2vec(0)
	r, err := New(b, p, 0)
	require.NoError(t, err)
	docs := p.Documents([]*text.Doc{
		tagged(t, "Who/O is/O Shaka/B-PERSON Khan/L-PERSON ?/O"),
		tagged(t, "I/O like/O London/U-LOC and/O Berlin/U-LOC ./O"),
	})
	adam := optim.DefaultAdam()
	state := optim.NewState(b, r.Params(), adam)
	for step := range 50 {
		b.Zero(r.Params().Grads)
		_, _, err := r.Learn(&nn.Pass{Backend: b, Train: true, Random: nn.Stream{Step: uint64(step)}}, Batch{docs})
		require.NoError(t, err)
		optim.Step(adam, b, r.Params(), state)
	}
	require.Less(t, r.Squares().Scores, 1e-5)
	found, err := r.Predict(&nn.Pass{Backend: b}, p.Documents([]*text.Doc{{Words: []string{"I", "like", "London", "."}}, {}}))
	require.NoError(t, err)
	require.Equal(t, [][]text.Span{{{Start: 2, End: 3, Label: "LOC"}}, nil}, found)
	counts := nn.Counts{}
	require.NoError(t, r.Score(&nn.Pass{Backend: b}, Batch{docs}, counts))
	require.Equal(t, Tally{Right: 3}, TallyOf(counts, ""))
	require.Equal(t, Tally{Right: 2}, TallyOf(counts, "LOC"))
	require.EqualValues(t, 11, counts[nn.CountRows])
	for name := range counts {
		require.Contains(t, r.CountNames(), name)
	}
}

// Documents do not depend on the others of a batch: gradients of all are the sum of those of
// each, as several ranks compute them.
func TestGradientsAddUp(t *testing.T) {
	b, p := backend(t), parser(t, Settings{Hidden: 6, Pieces: 2, Cut: 2, Drop: DefaultDrop}, "A", "B")
	r, err := New(b, p, 1)
	require.NoError(t, err)
	favour(t, b, r, "B-B", "O")
	docs := p.Documents([]*text.Doc{tagged(t, "a/U-A b/B-B c/L-B"), tagged(t, "d/O e/U-B"), tagged(t, "f/O")})
	learn := func(first, stride int, docs ...*Document) (loss float64) {
		v, _, err := r.Learn(&nn.Pass{Backend: b, Train: true, Random: nn.Stream{First: first, Stride: stride}}, Batch{docs})
		require.NoError(t, err)
		return float64(v.Float32s()[0])
	}
	grads := func() []float32 { return append([]float32{}, r.Params().Grads.Float32s()...) }
	b.Zero(r.Params().Grads)
	loss := learn(0, 1, docs...)
	whole := grads()
	b.Zero(r.Params().Grads)
	require.InDelta(t, loss, learn(0, 2, docs[0], docs[2])+learn(1, 2, docs[1]), 1e-5)
	require.InDeltaSlice(t, whole, grads(), 1e-5)
}

func TestEmptyBatches(t *testing.T) {
	b, p := backend(t), parser(t, Settings{Hidden: 6, Pieces: 2}, "A")
	r, err := New(b, p, 1)
	require.NoError(t, err)
	for _, docs := range [][]*text.Doc{nil, {{}}, {{Words: []string{"raw"}}}} {
		final := -1
		loss, weight, err := r.Learn(&nn.Pass{Backend: b, Train: true, Final: func(lo int) { final = lo }}, Batch{p.Documents(docs)})
		require.NoError(t, err)
		require.Zero(t, weight)
		require.Zero(t, loss.Float32s()[0])
		require.Zero(t, final)
		counts := nn.Counts{}
		require.NoError(t, r.Score(&nn.Pass{Backend: b}, Batch{p.Documents(docs)}, counts))
		require.Zero(t, counts[nn.CountRows])
	}
	_, _, err = r.Learn(&nn.Pass{}, Batch{})
	require.ErrorContains(t, err, "no Backend")
}

func TestNewRefusesBadSettings(t *testing.T) {
	for _, s := range []Settings{{Pieces: 2}, {Hidden: 1}, {Hidden: 1, Pieces: 5}, {Hidden: 1, Pieces: 2, Features: 9}, {Hidden: 1, Pieces: 2, Cut: -1}, {Hidden: 1, Pieces: 2, Drop: 1}} {
		_, err := New(backend(t), parser(t, s, "A"), 1)
		require.ErrorContains(t, err, "the parser needs a hidden width of at least 1")
	}
	_, err := Parser{}.Declare(0)
	require.ErrorContains(t, err, "needs an Encoder")
}

// Units start with mean 0 and variance 1 on normal token vectors.
func TestInitialUnits(t *testing.T) {
	for pieces := 2; pieces <= MostPieces; pieces++ {
		n, unit := 200000, newUnit(pieces)
		draws := make([]float32, n*pieces)
		init := nn.Normal(float32(unit.scale))
		init(draws, nil, draw(t))
		sum, squares := 0., 0.
		for i := range n {
			best := math.Inf(-1)
			for _, x := range draws[i*pieces:][:pieces] {
				best = max(best, float64(x)+unit.shift)
			}
			sum += best
			squares += best * best
		}
		require.InDelta(t, 0, sum/float64(n), .01, "%d pieces", pieces)
		require.InDelta(t, 1, squares/float64(n), .01, "%d pieces", pieces)
	}
}

// draw returns random numbers, which only a parameter's Initializer receives.
func draw(t *testing.T) (draws *nn.Draws) {
	b := nn.NewBuilder(1)
	b.Param("x", []int{1}, func(_ []float32, _ []int, d *nn.Draws) { draws = d })
	_, err := b.Build(backend(t))
	require.NoError(t, err)
	return draws
}

// A remote is a backend with memory of its own.
type remote struct{ nn.Backend }

func (remote) Alloc(n int) nn.Buffer     { return nn.OnDevice(0, 64, n, nn.Float32) }
func (remote) Copy(nn.Buffer, []float32) {}

func TestNewNeedsStatesOfTheBackend(t *testing.T) {
	_, err := New(remote{backend(t)}, parser(t, Settings{Hidden: 6, Pieces: 2}, "A"), 1)
	require.ErrorContains(t, err, "it must implement nn.Transitioner")
}
