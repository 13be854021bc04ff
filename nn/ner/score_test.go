package ner

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/text"
)

func TestCompare(t *testing.T) {
	d := tagged(t, "a/U-A b/B-B c/L-B d/- e/U-A")
	found := []text.Span{{Start: 0, End: 1, Label: "A"}, {Start: 1, End: 2, Label: "B"}, {Start: 3, End: 4, Label: "C"}, {Start: 4, End: 5, Label: "B"}}
	got := map[string]Tally{}
	add := func(label string, x Tally) {
		y := got[label]
		got[label] = Tally{x.Right + y.Right, x.Wrong + y.Wrong, x.Missed + y.Missed}
	}
	Compare(d, found, add)
	require.Equal(t, map[string]Tally{"A": {Right: 1, Missed: 1}, "B": {Wrong: 2, Missed: 1}}, got, "the tag of token 3 is missing")
	Compare(&text.Doc{Words: d.Words}, found, func(string, Tally) { t.Fatal("the document has no annotation") })
	all := Tally{Right: 1, Wrong: 2, Missed: 1}
	require.InDelta(t, 1./3, all.Precision(), 1e-12)
	require.InDelta(t, .5, all.Recall(), 1e-12)
	require.InDelta(t, .4, all.F(), 1e-12)
	require.Zero(t, Tally{}.F())
}
