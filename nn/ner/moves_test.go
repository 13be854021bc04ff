package ner

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/text"
)

func moves(t require.TestingT, labels ...string) *Moves {
	m, err := NewMoves(labels)
	require.NoError(t, err)
	return m
}

// tagged returns a document of words with their tags: "New/B-GPE York/L-GPE".
func tagged(t require.TestingT, line string) *text.Doc {
	d := &text.Doc{}
	var tags []text.Tag
	for field := range strings.FieldsSeq(line) {
		at := strings.LastIndex(field, "/")
		tag, err := text.ParseTag(field[at+1:])
		require.NoError(t, err)
		d.Words, tags = append(d.Words, field[:at]), append(tags, tag)
	}
	d.SetTags(tags)
	return d
}

func TestOrderIsByTokensThenName(t *testing.T) {
	require.Equal(t, []string{"PER", "ORG", "LOC"}, Order(map[string]int{"LOC": 5, "PER": 9, "ORG": 5}))
}

func TestMovesHaveTheNumbersOfSpaCy(t *testing.T) {
	m := moves(t, "PER", "LOC")
	want := []string{"B-PER", "B-LOC", "I-PER", "I-LOC", "L-PER", "L-LOC", "U-PER", "U-LOC", "U-", "O"}
	require.Equal(t, len(want), m.Len())
	for i, name := range want {
		require.Equal(t, name, m.Name(i))
		if action, label := m.split(i); label >= 0 || action == text.Out {
			require.Equal(t, i, m.number(action, label))
		}
	}
	require.Equal(t, 18, moves(t, "A", "B", "C", "D").Len())
}

func TestNewMovesRefusesBadLabels(t *testing.T) {
	for want, labels := range map[string][]string{
		"from 1 to 4096, not 0":           nil,
		`"A" is empty or appears twice`:   {"A", "B", "A"},
		`label "" is empty or appears tw`: {"A", ""},
	} {
		_, err := NewMoves(labels)
		require.ErrorContains(t, err, want)
	}
}
