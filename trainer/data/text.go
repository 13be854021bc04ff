package data

import (
	"fmt"

	"github.com/ringtrain/ringtrain/nn"
)

// A Text is rows of a text for a model that predicts the next character. Row i has
// Context characters, from i*Context on. The label of each character is the next one, so
// characters 1 to Rows·Context are labels once each.
type Text struct {
	IDs     []int32 // of the characters
	Context int     // characters of a row
}

// Rows returns the number of rows.
func (t *Text) Rows() int { return TextRows(len(t.IDs), t.Context) }

// TextRows returns the number of rows of a text with this many characters.
func TextRows(chars, context int) int { return max(chars-1, 0) / context }

// Gather copies rows into x, and the characters after theirs into labels, both
// [len(rows), Context]. If a slice is too short or a row does not exist, it fails without
// writing anything.
func (t *Text) Gather(rows []int32, x, labels []int32) error {
	n := t.Context
	if len(x) < len(rows)*n || len(labels) < len(rows)*n {
		return fmt.Errorf("data: a batch of %d rows needs %d ids and labels, but there is room for %d and %d", len(rows), len(rows)*n, len(x), len(labels))
	}
	for _, r := range rows {
		if r < 0 || int(r) >= t.Rows() {
			return fmt.Errorf("data: there is no row %d; the text has rows 0 to %d", r, t.Rows()-1)
		}
	}
	for i, r := range rows {
		at := int(r) * n
		copy(x[i*n:(i+1)*n], t.IDs[at:])
		copy(labels[i*n:(i+1)*n], t.IDs[at+1:])
	}
	return nil
}

// Stage returns a Stage of at most rows rows, for a model on b. X is (rows, Context), ids.
func (t *Text) Stage(rows int, b nn.Backend) Stage[nn.Batch] { return newTextStage(t, rows, b).batch }

// A textStage is the memory in which a batch is assembled.
type textStage struct {
	text      *Text
	x, labels *rowBuffer[int32]
}

func newTextStage(t *Text, rows int, b nn.Backend) *textStage {
	return &textStage{text: t, x: newInts(b, rows, t.Context), labels: newInts(b, rows, t.Context)}
}

// of returns the batch of the first rows in the stage.
func (s *textStage) of(rows int) nn.Batch {
	return nn.Batch{X: tensorOf(s.x.first(rows), s.x.width), Labels: s.labels.first(rows)}
}

func (s *textStage) batch(rows []int32) (nn.Batch, error) {
	if err := s.text.Gather(rows, s.x.host, s.labels.host); err != nil {
		return nn.Batch{}, err
	}
	s.x.flush(len(rows))
	s.labels.flush(len(rows))
	return s.of(len(rows)), nil
}

// Resident returns a Resident of rows that sampler chooses, in steps of at most batch
// rows. The text is in the memory of b once.
func (t *Text) Resident(batch int, sampler *Sampler, b nn.Pacer) *Resident[nn.Batch] {
	stage := newTextStage(t, batch, b)
	return NewResident(stage.batch, newTextStore(stage, b), sampler, b)
}

// A textStore holds the rows of a text in the memory of a backend. The labels are the text
// from its second character on.
type textStore struct {
	stage *textStage // holds the batches
	text  nn.Buffer
}

func newTextStore(stage *textStage, b nn.Backend) *textStore {
	used := stage.text.Rows()*stage.text.Context + 1
	s := &textStore{stage: stage, text: b.AllocInts(used)}
	b.CopyInts(s.text, stage.text.IDs[:used])
	return s
}

// Gather is part of Store.
func (s *textStore) Gather(p nn.Pace, order nn.Buffer, rows int) nn.Batch {
	b, n := s.stage.of(rows), s.text.Len()-1
	p.Gather(b.X.Data, s.text.Slice(0, n), order, s.stage.text.Context)
	p.Gather(b.Labels, s.text.Slice(1, n+1), order, s.stage.text.Context)
	return b
}
