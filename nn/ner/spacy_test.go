package ner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/models"
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
		Settings: Settings{Features: SixTokens, Hidden: 4, Pieces: 2}, Attrs: []text.Attr{text.Norm, text.Shape}, Moves: moves(t, "LOC", "PER"),
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
	require.InDelta(t, want.Loss, r.Squares(), 1e-4)
	for i, q := range r.Params().List {
		if q.Name == "ner.lower.W" {
			continue // for a missing token, spaCy adds the vector of the batch's last token
		}
		require.InDeltaSlice(t, ordered[i].Grad, q.Grads.Float32s(), 1e-3, q.Name)
	}
}
