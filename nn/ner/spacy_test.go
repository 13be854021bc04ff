package ner

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/nn/text"
)

// docOf returns a document of words with tags.
func docOf(t *testing.T, words, tags []string) *text.Doc {
	t.Helper()
	line := ""
	for i, tag := range tags {
		word := fmt.Sprint("w", i)
		if words != nil {
			word = words[i]
		}
		line += word + "/" + tag + " "
	}
	return tagged(t, line)
}

// In every state, the possible moves and their costs are spaCy's.
func TestCostsOfSpaCy(t *testing.T) {
	file, err := os.ReadFile("testdata/costs.jsonl")
	require.NoError(t, err)
	m := moves(t, "PER", "LOC")
	states := 0
	for line := range bytes.Lines(file) {
		var want struct{ Gold, Done, Costs []string }
		require.NoError(t, json.Unmarshal(line, &want))
		d := docOf(t, nil, want.Gold)
		doc := m.document(d)
		for i := range want.Gold {
			s, costs := after(m, d, strings.Join(want.Done[:i], " ")), make([]uint8, m.Len())
			m.costs(costs, &s, &doc)
			var got []string
			for move, cost := range costs {
				if cost != impossible {
					got = append(got, fmt.Sprintf("%s=%d", m.Name(move), cost))
				}
			}
			require.Equal(t, want.Costs[i], strings.Join(got, " "), "%v after %v", want.Gold, want.Done[:i])
			states++
		}
	}
	require.Equal(t, 179, states)
}

// One update has spaCy's loss and gradients.
func TestUpdateOfSpaCy(t *testing.T) {
	file, err := os.ReadFile("testdata/update.json")
	require.NoError(t, err)
	var want struct {
		Loss   float64
		Docs   []struct{ Words, Tags []string }
		Params []struct {
			Node, Name   string
			Shape        []int
			Values, Grad []float32
		}
	}
	require.NoError(t, json.Unmarshal(file, &want))
	b := backend(t)
	p := Parser{
		Settings: Settings{Features: SixTokens, Hidden: 4, Pieces: 2, LastForMissing: true}, Attrs: []text.Attr{text.Norm, text.Shape}, Moves: moves(t, "LOC", "PER"),
		Encoder: models.Tok2Vec{
			Embed:  models.MultiHashEmbed{Width: 4, Attrs: []string{"NORM", "SHAPE"}, Rows: []int{12, 6}},
			Encode: models.MaxoutWindowEncoder{Width: 4, Depth: 1, Window: 1, Pieces: 3},
		}.Layer(0),
	}
	r, err := New(b, p, 1)
	require.NoError(t, err)
	// spaCy has the lower layer, the upper layer and the linear layer before tok2vec.
	list, n := want.Params, len(want.Params)
	ordered := slices.Concat(list[7:n], list[5:7], list[0:3], list[3:5])
	require.Len(t, r.Params().List, n)
	for i, q := range r.Params().List {
		require.Equal(t, ordered[i].Shape, q.Shape, "%s, %s of %s", q.Name, ordered[i].Name, ordered[i].Node)
		b.Copy(q.Values, ordered[i].Values)
	}
	var docs []*text.Doc
	for _, d := range want.Docs {
		docs = append(docs, docOf(t, d.Words, d.Tags))
	}
	_, _, err = r.Learn(&nn.Pass{Backend: b}, Batch{p.Documents(docs)})
	require.NoError(t, err)
	require.InDelta(t, want.Loss, r.Squares().Scores, 1e-4)
	for i, q := range r.Params().List {
		require.InDeltaSlice(t, ordered[i].Grad, q.Grads.Float32s(), 1e-3, q.Name)
	}
}

// A spacyTraining is a run by spaCy without dropout; see testdata/losses.py.
type spacyTraining struct {
	Width, Depth, Hidden, Batch int
	Rows                        []int
	Attrs                       []string
	Pieces                      struct{ Tok2Vec, Ner int }
	Rate                        float64 `json:"learn_rate"`
	Labels                      []string
	Docs                        []struct{ Words, Tags []string }
	Losses                      [][3]float64 // of each step: LOSS TOK2VEC, LOSS NER, and the logarithmic loss
	Params                      []struct {
		Name   string
		Shape  []int
		Values []float32
	}
}

// open returns a recognizer with the weights that spaCy began with, and the documents.
func (s spacyTraining) open(t *testing.T, b nn.Backend, change func(*Settings)) (*Recognizer, []*Document) {
	p := Parser{
		Settings: Settings{Features: SixTokens, Hidden: s.Hidden, Pieces: s.Pieces.Ner, LastForMissing: true}, Moves: moves(t, s.Labels...),
		Encoder: models.Tok2Vec{
			Embed:  models.MultiHashEmbed{Width: s.Width, Attrs: s.Attrs, Rows: s.Rows},
			Encode: models.MaxoutWindowEncoder{Width: s.Width, Depth: s.Depth, Window: 1, Pieces: s.Pieces.Tok2Vec},
		}.Layer(0),
	}
	change(&p.Settings)
	for _, name := range s.Attrs {
		attr, err := text.ParseAttr(name)
		require.NoError(t, err)
		p.Attrs = append(p.Attrs, attr)
	}
	r, err := New(b, p, 1)
	require.NoError(t, err)
	require.Len(t, r.Params().List, len(s.Params))
	for _, param := range s.Params {
		q := r.Params().Lookup(param.Name)
		require.NotNil(t, q, param.Name)
		require.Equal(t, param.Shape, q.Shape, param.Name)
		b.Copy(q.Values, param.Values)
	}
	var docs []*text.Doc
	for _, d := range s.Docs {
		docs = append(docs, docOf(t, d.Words, d.Tags))
	}
	return r, p.Documents(docs)
}

// train returns the largest relative difference of losses from those of spaCy.
func (s spacyTraining) train(t *testing.T, change func(*Settings)) (worst float64) {
	b := backend(t)
	r, docs := s.open(t, b, change)
	adam := optim.DefaultAdam()
	adam.LearnRate, adam.L2, adam.UseAverages = optim.Constant(s.Rate), optim.Constant(.01), false
	state := optim.NewState(b, r.Params(), adam)
	for step, want := range s.Losses {
		var batch Batch
		for i := range s.Batch {
			batch.Docs = append(batch.Docs, docs[(step*s.Batch+i)%len(docs)])
		}
		b.Zero(r.Params().Grads)
		loss, _, err := r.Learn(&nn.Pass{Backend: b, Train: true, Random: nn.Stream{Step: uint64(step), Stride: 1}}, batch)
		require.NoError(t, err)
		for i, got := range []float64{r.Squares().Vectors, r.Squares().Scores, float64(loss.Float32s()[0])} {
			worst = max(worst, math.Abs(got-want[i])/max(want[i], 1e-6))
		}
		optim.Step(adam, b, r.Params(), state)
	}
	return worst
}

// A run has spaCy's losses in every step. SPACY_LOSSES names another file to check, such
// as one with the network of spaCy's default.cfg.
func TestTrainingOfSpaCy(t *testing.T) {
	path := cmp.Or(os.Getenv("SPACY_LOSSES"), "testdata/losses.json")
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	var s spacyTraining
	require.NoError(t, json.Unmarshal(file, &s))
	require.GreaterOrEqual(t, len(s.Losses), 100)
	worst := s.train(t, func(*Settings) {})
	t.Logf("%s: %d steps differ by at most %.2g", path, len(s.Losses), worst)
	require.Less(t, worst, 1e-4)
	require.Greater(t, s.train(t, func(c *Settings) { c.LastForMissing = false }), 1e-4)
	require.Greater(t, s.train(t, func(c *Settings) { c.Drop = DefaultDrop }), 1e-4)
}
