package ner

import (
	"slices"

	"github.com/ringtrain/ringtrain/nn/text"
)

// A Tally counts entities: those found that are right and wrong, and gold ones that were not found.
type Tally struct{ Right, Wrong, Missed float64 }

// Precision is the fraction of found entities that are right, 0 if none was found.
func (t Tally) Precision() float64 { return fraction(t.Right, t.Right+t.Wrong) }

// Recall is the fraction of gold entities that were found, 0 if there are none.
func (t Tally) Recall() float64 { return fraction(t.Right, t.Right+t.Missed) }

// F is the harmonic mean of precision and recall, 0 if nothing is right.
func (t Tally) F() float64 { return fraction(2*t.Right, 2*t.Right+t.Wrong+t.Missed) }

func fraction(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Compare calls add for every entity found in d or missed, with its label: as spaCy, which
// counts an entity as right only if start, end and label are. An entity found among tokens
// whose tags are missing is neither right nor wrong. Documents without annotation do not
// count.
func Compare(d *text.Doc, found []text.Span, add func(label string, t Tally)) {
	if !d.Annotated {
		return
	}
	gold := make(map[text.Span]bool, len(d.Entities)) // true: it was found
	for _, e := range d.Entities {
		gold[e] = false
	}
	for _, f := range found {
		_, right := gold[f]
		switch {
		case right:
			gold[f] = true
			add(f.Label, Tally{Right: 1})
		case d.Missing == nil || !slices.Contains(d.Missing[f.Start:f.End], true):
			add(f.Label, Tally{Wrong: 1})
		}
	}
	for _, e := range d.Entities {
		if !gold[e] {
			add(e.Label, Tally{Missed: 1})
		}
	}
}
