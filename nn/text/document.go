package text

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A Doc is words with named entities.
type Doc struct {
	Words []string // not empty
	// Spaces says whether a space follows each word. nil: one follows each word but the
	// last.
	Spaces []bool
	// Entities are in ascending order and do not overlap.
	Entities []Span
	// Annotated means that Entities are known, even if there are none. It is false for raw
	// text.
	Annotated bool
	// Missing marks words outside Entities that may or may not belong to one. nil: there
	// are none.
	Missing []bool
}

// A Span is the words Start to End-1 of a Doc, with a label.
type Span struct {
	Start, End int
	Label      string
}

// A Range is the characters Start to End-1 of a text. A character is a Unicode code point.
type Range struct{ Start, End int }

// Len returns the number of words.
func (d *Doc) Len() int { return len(d.Words) }

// spaced reports whether a space follows word i.
func (d *Doc) spaced(i int) bool {
	if d.Spaces == nil {
		return i < len(d.Words)-1
	}
	return d.Spaces[i]
}

// Text returns the text of the document.
func (d *Doc) Text() string {
	var b strings.Builder
	for i, w := range d.Words {
		b.WriteString(w)
		if d.spaced(i) {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// Offsets returns where each word is in Text.
func (d *Doc) Offsets() []Range {
	offsets, at := make([]Range, len(d.Words)), 0
	for i, w := range d.Words {
		end := at + utf8.RuneCountInString(w)
		offsets[i] = Range{at, end}
		at = end
		if d.spaced(i) {
			at++
		}
	}
	return offsets
}

// Tags returns the BILUO tag of each word. Without annotation all are missing.
func (d *Doc) Tags() []Tag {
	tags := make([]Tag, len(d.Words))
	if !d.Annotated {
		return tags
	}
	for i := range tags {
		if d.Missing == nil || !d.Missing[i] {
			tags[i].Action = Out
		}
	}
	for _, e := range d.Entities {
		for i := e.Start; i < e.End; i++ {
			tags[i] = Tag{e.action(i), e.Label}
		}
	}
	return tags
}

// action returns the action at word i of the span.
func (s Span) action(i int) Action {
	switch {
	case s.End-s.Start == 1:
		return Unit
	case i == s.Start:
		return Begin
	case i == s.End-1:
		return Last
	}
	return In
}

// SetTags replaces the annotation with tags, one per word, of any Scheme. The document
// is annotated unless every tag is missing.
func (d *Doc) SetTags(tags []Tag) {
	d.Entities, d.Missing = spans(tags), nil
	gap := func(t Tag) bool { return t.Action == Missing }
	d.Annotated = !slices.ContainsFunc(tags, gap)
	if d.Annotated {
		return
	}
	d.Missing = make([]bool, len(tags))
	for i, t := range tags {
		d.Missing[i] = gap(t)
		d.Annotated = d.Annotated || !d.Missing[i]
	}
	if !d.Annotated {
		d.Missing = nil
	}
}
