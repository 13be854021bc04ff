package ner

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/text"
)

// path returns the moves of the oracle.
func path(m *Moves, d *text.Doc) []string {
	doc := m.document(d)
	costs := make([]uint8, m.Len())
	var names []string
	for s := start(d.Len()); !s.final(); {
		move := m.oracle(costs, m.costs(costs, &s, &doc))
		names = append(names, m.Name(move))
		m.apply(&s, move)
	}
	return names
}

func TestOracle(t *testing.T) {
	m := moves(t, "PERSON", "GPE")
	for line, want := range map[string]string{
		"Casey/U-PERSON went/O to/O New/B-GPE York/L-GPE ./O": "U-PERSON O O B-GPE L-GPE O",
		"Casey/- went/O": "O O",
		"Bank/B-GPE of/I-GPE New/I-GPE York/L-GPE Casey/U-GPE":    "B-GPE I-GPE I-GPE L-GPE U-GPE",
		"Unknown/U-EVENT label/O costs/B-EVENT something/L-EVENT": "O O O O",
	} {
		require.Equal(t, strings.Fields(want), path(m, tagged(t, line)), line)
	}
}

// after returns the state after moves.
func after(m *Moves, d *text.Doc, names string) state {
	s := start(d.Len())
	for name := range strings.FieldsSeq(names) {
		for i := range m.Len() {
			if m.Name(i) == name {
				m.apply(&s, i)
			}
		}
	}
	return s
}

func TestCosts(t *testing.T) {
	m := moves(t, "A", "B")
	for _, c := range []struct{ doc, done, want string }{
		// One row per situation: gold tags, moves so far, and all possible moves with their costs.
		{"x/B-A x/L-A x/O", "", "B-A=0 B-B=1 U-A=1 U-B=1 O=1"},
		{"x/U-B x/O", "", "B-A=1 B-B=1 U-A=1 U-B=0 O=1"},
		{"x/O x/O", "", "B-A=1 B-B=1 U-A=1 U-B=1 O=0"},
		{"x/- x/O", "", "B-A=0 B-B=0 U-A=0 U-B=0 O=0"},
		{"x/O", "", "U-A=1 U-B=1 O=0"}, // an entity of several tokens does not begin at the last
		{"x/B-A x/I-A x/L-A", "B-A", "I-A=0 L-A=1"},
		{"x/B-A x/I-A x/L-A", "B-B", "I-B=0 L-B=0"}, // lost by its label
		{"x/B-A x/I-A x/L-A", "O B-A", "L-A=0"},     // lost by its start; the last token
		{"x/B-A x/L-A x/O", "B-A", "I-A=1 L-A=0"},   // right so far
		{"x/B-A x/L-A x/O", "B-B", "I-B=0 L-B=0"},   // lost, and nothing follows
		{"x/B-A x/L-A x/U-A", "B-B", "I-B=1 L-B=0"}, // lost, but another follows
		{"x/O x/O x/O", "B-A", "I-A=0 L-A=0"},       // wrong, and nothing follows
		{"x/O x/O x/U-B", "B-A", "I-A=1 L-A=0"},     // wrong, but an entity follows
		{"x/O x/U-A x/O", "B-A", "I-A=0 L-A=0"},     // hides the next entity in any case
		{"x/O x/U-A x/U-A", "B-A", "I-A=1 L-A=0"},   // and must not hide another
		{"x/O x/B-A x/L-A", "B-A", "I-A=0 L-A=0"},   // as for U
		{"x/O x/- x/O", "B-A", "I-A=0 L-A=0"},       // not known
		{"x/O x/O x/-", "B-A", "I-A=0 L-A=0"},       // nothing known follows
		{"x/O x/U-B x/-", "B-A", "I-A=1 L-A=0"},     // as in spaCy
	} {
		d := tagged(t, c.doc)
		doc, s := m.document(d), after(m, d, c.done)
		costs := make([]uint8, m.Len())
		least := m.costs(costs, &s, &doc)
		var got []string
		smallest := uint8(impossible)
		for i, cost := range costs {
			if cost != impossible {
				got = append(got, m.Name(i)+"="+string('0'+rune(cost)))
			}
			smallest = min(smallest, cost)
		}
		require.Equal(t, c.want, strings.Join(got, " "), "%s after %q", c.doc, c.done)
		require.Equal(t, smallest, least)
	}
}

func TestNoEntityBeginsAtWhiteSpace(t *testing.T) {
	m := moves(t, "A")
	d := &text.Doc{Words: []string{" \n", "x"}, Annotated: true}
	doc, s := m.document(d), start(2)
	costs := make([]uint8, m.Len())
	m.costs(costs, &s, &doc)
	require.Equal(t, []uint8{impossible, impossible, impossible, impossible, impossible, costNone}, costs)
}
