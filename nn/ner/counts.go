package ner

import (
	"github.com/ringtrain/ringtrain/nn"
)

// Prefixes of names in Counts of a Recognizer: entities in all, and with ":" and a label, of
// each label. CountRows and CountLoss are of tokens of documents with entities.
const (
	CountRight  = "entities_right"
	CountWrong  = "entities_wrong"
	CountMissed = "entities_missed"
)

// TallyOf returns the tally of the entities of a label in counts, or of all if label is "".
func TallyOf(c nn.Counts, label string) Tally {
	return Tally{Right: c[countName(CountRight, label)], Wrong: c[countName(CountWrong, label)], Missed: c[countName(CountMissed, label)]}
}

func countName(kind, label string) string {
	if label == "" {
		return kind
	}
	return kind + ":" + label
}

// add adds a tally to the counts of a label.
func (t Tally) add(c nn.Counts, label string) {
	c[countName(CountRight, label)] += t.Right
	c[countName(CountWrong, label)] += t.Wrong
	c[countName(CountMissed, label)] += t.Missed
}

// CountNames implements nn.Model. Gold entities of labels that training did not have count
// only in all.
func (r *Recognizer) CountNames() []string {
	names := []string{nn.CountRows, nn.CountLoss}
	for _, label := range append([]string{""}, r.moves.labels...) {
		for _, kind := range []string{CountRight, CountWrong, CountMissed} {
			names = append(names, countName(kind, label))
		}
	}
	return names
}

// Score implements nn.Model. The loss is that of the states on the predicted path.
func (r *Recognizer) Score(p *nn.Pass, b Batch, c nn.Counts) error {
	known := map[string]bool{}
	for _, label := range r.moves.labels {
		known[label] = true
	}
	found, losses, err := r.read(p, b.Docs)
	if err != nil {
		return err
	}
	for row, d := range b.Docs {
		if !d.Annotated {
			continue
		}
		c[nn.CountRows] += float64(d.Len())
		c[nn.CountLoss] += losses[row]
		Compare(d.Doc, found[row], func(label string, t Tally) {
			t.add(c, "")
			if known[label] {
				t.add(c, label)
			}
		})
	}
	return nil
}
