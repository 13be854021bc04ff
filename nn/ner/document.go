package ner

import (
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/nn/text"
)

// A tag is the gold standard of a token.
type tag struct {
	action text.Action
	label  int16 // number in Moves; -1 if the tag has none, or one that Moves lacks
}

// A document is what the moves need to know of a text.Doc.
type document struct {
	gold  []tag  // of each token
	blank []bool // whether a token is white space, where no entity begins; nil if none is
	known bool   // some tag is not missing
}

// document returns what the moves need to know of d.
func (m *Moves) document(d *text.Doc) document {
	out := document{gold: make([]tag, d.Len())}
	for i, t := range d.Tags() {
		out.gold[i] = tag{action: t.Action, label: int16(slices.Index(m.labels, t.Label))}
		out.known = out.known || t.Action != text.Missing
		if strings.TrimSpace(d.Words[i]) == "" {
			if out.blank == nil {
				out.blank = make([]bool, d.Len())
			}
			out.blank[i] = true
		}
	}
	return out
}

// annotated reports whether any of the tokens from lo to hi, excluding hi, has a tag.
func (d *document) annotated(lo, hi int) bool {
	return d.known && slices.ContainsFunc(d.gold[lo:hi], func(t tag) bool { return t.action != text.Missing })
}
