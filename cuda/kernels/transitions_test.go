//go:build linux && (amd64 || arm64) && !static

package kernels

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/ner"
	"github.com/ringtrain/ringtrain/nn/text"
)

// A transitioner is nn/cpu, except that the kernels make the moves, in copies of the memory.
type transitioner struct {
	*cpu.Backend
	h *harness
}

var _ nn.Transitioner = transitioner{}

// copied returns the address of a copy of v on the device.
func (b transitioner) copied(v nn.Buffer) uintptr {
	if v.DType() == nn.Int32 {
		return upload(b.h, v.Int32s())
	}
	return upload(b.h, v.Float32s())
}

// written returns memory on the device for v. It is copied to v when fetch is called.
func (b transitioner) written() (at func(v nn.Buffer) uintptr, fetch func()) {
	var all []func()
	at = func(v nn.Buffer) uintptr {
		if v.Len() == 0 {
			return 0
		}
		from := b.h.room(v.Len())
		all = append(all, func() {
			if v.DType() == nn.Int32 {
				download(b.h, v.Int32s(), from)
			} else {
				download(b.h, v.Float32s(), from)
			}
		})
		return from
	}
	return at, func() {
		for _, f := range all {
			f()
		}
	}
}

func (b transitioner) Transitions(t nn.TransitionBatch) {
	random := uintptr(0)
	if t.Rate > 0 {
		random = upload(b.h, []Random{NewRandom(t.Random)})
	}
	written, fetch := b.written()
	b.h.launch("transitions", t.Parts.Len()/nn.TransitionPartLen, NewTransitions(t, random, b.copied, written))
	fetch()
}

func (b transitioner) TransitionsGrad(dproducts, dpad, dbias, dunits nn.Buffer, t nn.TransitionBatch) {
	documents := t.Documents.Len() - 1
	pads, biases := b.Temp(documents*t.Pad.Len()), b.Temp(documents*t.Bias.Len())
	written, fetch := b.written()
	b.Zero(dproducts)
	d := b.copied(dproducts)
	b.h.launch("transitions_grad", pads.Len(), d, written(pads), written(biases), b.copied(dunits), int64(pads.Len()), NewTransitions(t, 0, b.copied, b.copied))
	fetch()
	download(b.h, dproducts.Float32s(), d)
	b.SumRows(dpad, pads)
	b.SumRows(dbias, biases)
}

// parsers have all features, some with an odd number of units, with more moves than a warp has
// lanes, and with documents in several parts.
var parsers = []struct {
	ner.Settings
	labels int
}{
	{ner.Settings{Features: ner.ThreeTokens, Hidden: 8, Pieces: 2}, 2},
	{ner.Settings{Features: ner.ThreeTokens, Hidden: 5, Pieces: 3, Cut: 3}, 1},
	{ner.Settings{Features: ner.SixTokens, Hidden: 39, Pieces: 2, Cut: 4}, 3},
	{ner.Settings{Features: ner.SixTokens, Hidden: 6, Pieces: 1}, 20},
	{ner.Settings{Features: ner.SixTokens, Hidden: 33, Pieces: 4, Cut: 3}, 2},
	{ner.Settings{Features: ner.SixTokens, Hidden: 7, Pieces: 1, Direct: true}, 2},
	{ner.Settings{Features: ner.ThreeTokens, Hidden: 4, Pieces: 2, Direct: true, Cut: 5}, 9},
}

// transitions compares the loss, the gradients and the entities of models with those of nn/ner on
// the host. The products are the same, so only the exponentials of the loss may differ in the last
// bit, and those of the emulator do not after rounding. Gradients of two parameters are sums in
// another order.
func (h *harness) transitions() {
	for _, p := range parsers {
		for _, train := range []bool{false, true} {
			docs := h.documents(p.labels)
			host := learnMoves(h, h.cpu, p.Settings, p.labels, train, docs)
			got := learnMoves(h, transitioner{h.cpu, h}, p.Settings, p.labels, train, docs)
			what := fmt.Sprintf("%+v, train %v", p, train)
			require.Equal(h.t, host.found, got.found, what)
			require.Greater(h.t, len(host.found), 3, what)
			require.InEpsilon(h.t, host.loss, got.loss, 1e-6, what)
			require.InEpsilon(h.t, host.squares, got.squares, 1e-6, what)
			require.InDeltaSlice(h.t, host.losses, got.losses, 1e-4, what)
			for name, want := range host.gradients {
				if os.Getenv("RINGTRAIN_REQUIRE_GPU") != "" || name == "ner.lower.pad" || name == "ner.lower.b" {
					require.InDeltaSlice(h.t, want, got.gradients[name], 1e-5, "%s: %s", what, name)
				} else {
					require.Equal(h.t, want, got.gradients[name], "%s: %s", what, name)
				}
			}
		}
	}
}

// documents returns documents of all kinds: empty, of one word, with blanks, with missing tags, and
// without tags.
func (h *harness) documents(labels int) (docs []*text.Doc) {
	for _, words := range []int{9, 0, 1, 17, 3, 2} {
		d := &text.Doc{Annotated: true}
		for i := range words {
			word := fmt.Sprint("w", h.r.IntN(30))
			if h.r.IntN(8) == 0 {
				word = " "
			}
			d.Words = append(d.Words, word)
			if n := 1 + h.r.IntN(4); i%5 == 0 && i+n <= words {
				d.Entities = append(d.Entities, text.Span{Start: i, End: i + n, Label: fmt.Sprint("L", h.r.IntN(labels+1))}) // one label is unknown
			}
		}
		docs = append(docs, d)
	}
	docs[3].Missing = make([]bool, 17)
	copy(docs[3].Missing[6:], []bool{true, true})
	return append(docs, &text.Doc{Words: []string{"no", "tags"}})
}

// A lesson is what a model learned from documents and found in them.
type lesson struct {
	loss, squares float32
	losses        []float64
	gradients     map[string][]float32
	found         []text.Span
}

func learnMoves(h *harness, b nn.Backend, s ner.Settings, labels int, train bool, docs []*text.Doc) (l lesson) {
	s.Drop = .15 // 1/(1-.15) has other bits in float64
	names := make([]string, labels)
	for i := range names {
		names[i] = fmt.Sprint("L", i)
	}
	moves, err := ner.NewMoves(names)
	require.NoError(h.t, err)
	p := ner.Parser{Settings: s, Encoder: &nn.HashEmbed{Out: 6, Rows: 40}, Attrs: []text.Attr{text.Orth}, Moves: moves}
	r, err := ner.New(b, p, 5)
	require.NoError(h.t, err)
	draws := rand.New(rand.NewPCG(3, 4))
	for _, q := range r.Params().List { // the upper layer is 0 at first
		for i := range q.Values.Float32s() {
			q.Values.Float32s()[i] = float32(draws.NormFloat64()) / 2
		}
	}
	batch := ner.Batch{Docs: p.Documents(docs)}
	h.cpu.Zero(r.Params().Grads)
	pass := &nn.Pass{Backend: b, Train: train, Random: nn.Stream{Seed: 1 << 40, Step: 3, First: 2, Stride: 3}}
	loss, _, err := r.Learn(pass, batch)
	require.NoError(h.t, err)
	l.loss, l.squares, l.gradients = loss.Float32s()[0], float32(r.Squares().Scores), map[string][]float32{}
	for _, q := range r.Params().List {
		l.gradients[q.Name] = slices.Clone(q.Grads.Float32s())
	}
	for _, d := range batch.Docs {
		counts := nn.Counts{}
		require.NoError(h.t, r.Score(pass, ner.Batch{Docs: []*ner.Document{d}}, counts))
		l.losses = append(l.losses, counts[nn.CountLoss])
	}
	found, err := r.Predict(pass, batch.Docs)
	require.NoError(h.t, err)
	l.found = slices.Concat(found...)
	return l
}
