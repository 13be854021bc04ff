package ner

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/text"
)

func TestChop(t *testing.T) {
	m := moves(t, "A")
	d := tagged(t, "a/O b/B-A c/I-A d/L-A e/O f/U-A g/-")
	doc := m.document(d)
	parts := m.chop(nil, &doc, 3)
	require.Len(t, parts, 2, "nothing is known of the last part")
	require.Equal(t, chunk{start(7), 3}, parts[0])
	require.Equal(t, chunk{state{next: 3, end: 7, begin: 1}, 6}, parts[1], "the oracle has begun an entity")
	require.Len(t, m.chop(nil, &doc, 7), 1)
	raw := m.document(&text.Doc{Words: []string{"x"}})
	require.Empty(t, m.chop(nil, &raw, 7))
}

func TestChopLength(t *testing.T) {
	lengths := map[int]bool{}
	for step := range uint64(2000) {
		n := chopLength(10, 1, nn.Stream{Seed: 3, Step: step, First: 0, Stride: 1})
		require.Equal(t, n, chopLength(10, 1, nn.Stream{Seed: 3, Step: step, First: 5, Stride: 8}), "every rank has the same")
		lengths[n] = true
	}
	for n := range 25 {
		require.Equal(t, n >= 5 && n < 20, lengths[n], n)
	}
	require.Equal(t, 1, chopLength(1, 1, nn.Stream{}))
}
