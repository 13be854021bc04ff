package ner

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/text"
)

func TestFeatures(t *testing.T) {
	m := moves(t, "A")
	d := &text.Doc{Words: make([]string, 9)}
	for _, c := range []struct {
		features Features
		done     string
		want     []int32
	}{
		{ThreeTokens, "", []int32{0, -1, -1}},
		{ThreeTokens, "O U-A", []int32{2, -1, -1}},
		{ThreeTokens, "O B-A I-A", []int32{3, 1, 2}},
		{SixTokens, "O", []int32{1, -1, -1, -1, -1, -1}},
		{SixTokens, "O B-A I-A", []int32{3, 1, 2, -1, -1, -1}},
		{SixTokens, "B-A I-A I-A I-A I-A I-A I-A", []int32{7, 0, 1, 2, 3, 4}},
	} {
		s := after(m, d, c.done)
		ids := make([]int32, c.features.Tokens())
		c.features.of(&s, ids)
		require.Equal(t, c.want, ids, "%v after %q", c.features, c.done)
	}
	require.Equal(t, "Features(9)", Features(9).String())
}
