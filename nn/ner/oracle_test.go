package ner

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/nn/text"
)

// gold draws a document with entities of the labels of m.
func gold(t *rapid.T, m *Moves, tokens int) *text.Doc {
	d := &text.Doc{Words: strings.Fields(strings.Repeat("x ", tokens)), Annotated: true}
	for at := 0; at < tokens; at++ {
		if n := rapid.IntRange(-1, 3).Draw(t, "tokens of an entity"); n > 0 && at+n <= tokens {
			d.Entities = append(d.Entities, text.Span{Start: at, End: at + n, Label: rapid.SampledFrom(m.labels).Draw(t, "label")})
			at += n - 1
		}
	}
	return d
}

// reach returns the largest number of gold entities that possible moves can still find from s,
// and the smallest number that moves of the smallest cost find.
func reach(m *Moves, s state, d *text.Doc) (most, least int) {
	if s.final() {
		return 0, 0
	}
	doc, costs := m.document(d), make([]uint8, m.Len())
	smallest := m.costs(costs, &s, &doc)
	least = math.MaxInt
	for move, cost := range costs {
		if cost == impossible {
			continue
		}
		next, right := s, 0
		if e, ended := m.apply(&next, move); ended {
			for _, g := range d.Entities {
				if g == m.span(e) {
					right++
				}
			}
		}
		a, b := reach(m, next, d)
		most = max(most, right+a)
		if cost == smallest {
			least = min(least, right+b)
		}
	}
	return most, least
}

// From every state that can be reached, any moves of cost 0 find as many gold entities as any
// other moves could.
func TestMovesOfNoCostAreOptimal(t *testing.T) {
	m := moves(t, "A", "B")
	rapid.Check(t, func(t *rapid.T) {
		d := gold(t, m, rapid.IntRange(1, 6).Draw(t, "tokens"))
		doc, s, costs := m.document(d), start(d.Len()), make([]uint8, m.Len())
		for skip := rapid.IntRange(0, d.Len()-1).Draw(t, "moves before"); skip > 0; skip-- {
			m.costs(costs, &s, &doc)
			var possible []int
			for move, cost := range costs {
				if cost != impossible {
					possible = append(possible, move)
				}
			}
			m.apply(&s, rapid.SampledFrom(possible).Draw(t, "move"))
		}
		require.EqualValues(t, costNone, m.costs(costs, &s, &doc))
		most, least := reach(m, s, d)
		require.Equal(t, most, least)
	})
}

// The oracle's path has the gold tags.
func TestOracleFindsEveryEntity(t *testing.T) {
	m := moves(t, "A", "B", "C")
	rapid.Check(t, func(t *rapid.T) {
		d := gold(t, m, rapid.IntRange(1, 40).Draw(t, "tokens"))
		var want []string
		for _, tag := range d.Tags() {
			want = append(want, tag.String())
		}
		require.Equal(t, want, path(m, d))
	})
}
