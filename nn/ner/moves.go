package ner

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ringtrain/ringtrain/nn/text"
)

// Moves are what can be done with the next token of a document. For each label there are
// B- (begin an entity), I- (continue it), L- (end it) and U- (an entity of one token). O
// leaves the token outside, and a U- without a label is spaCy's, for tokens that a user has
// blocked; it is never possible here. Each move takes one token.
//
// Moves are numbered as in spaCy: all B- in the order of the labels, then I-, L-, U-, the
// blank U- and O.
type Moves struct{ labels []string }

// mostLabels keeps a label's number within a tag.
const mostLabels = 1 << 12

// NewMoves returns the moves for labels in this order. They must be distinct and not empty.
func NewMoves(labels []string) (*Moves, error) {
	if len(labels) < 1 || len(labels) > mostLabels {
		return nil, fmt.Errorf("ner: the number of labels must be from 1 to %d, not %d; does the training data have entities?", mostLabels, len(labels))
	}
	seen := map[string]bool{"": true}
	for _, l := range labels {
		if seen[l] {
			return nil, fmt.Errorf("ner: the label %q is empty or appears twice in %q", l, labels)
		}
		seen[l] = true
	}
	return &Moves{labels: slices.Clone(labels)}, nil
}

// Order returns labels in spaCy's order: by the number of training tokens within their
// entities, then by name, both descending.
func Order(tokens map[string]int) []string {
	return slices.SortedFunc(maps.Keys(tokens), func(a, b string) int {
		return cmp.Or(cmp.Compare(tokens[b], tokens[a]), cmp.Compare(b, a))
	})
}

// Labels returns the labels in their order.
func (m *Moves) Labels() []string { return slices.Clone(m.labels) }

// Len returns the number of moves.
func (m *Moves) Len() int { return 4*len(m.labels) + 2 }

// Name returns the name of a move, such as "B-ORG" or "O".
func (m *Moves) Name(move int) string {
	switch action, label := m.split(move); {
	case action == text.Out:
		return "O"
	case label < 0:
		return "U-"
	default:
		return text.Tag{Action: action, Label: m.labels[label]}.String()
	}
}

// number returns the number of a move. The label of Out does not matter.
func (m *Moves) number(a text.Action, label int) int {
	if a == text.Out {
		return m.Len() - 1
	}
	return int(a-text.Begin)*len(m.labels) + label
}

// split returns the action of a move and the number of its label, or -1 if it has none.
func (m *Moves) split(move int) (text.Action, int) {
	switch blank := m.Len() - 2; {
	case move == blank:
		return text.Unit, -1
	case move > blank:
		return text.Out, -1
	}
	return text.Begin + text.Action(move/len(m.labels)), move % len(m.labels)
}
