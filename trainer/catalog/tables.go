package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// A tableSchema says how rows of a table become numbers, and what is predicted from them.
// It is in the notes of a file of weights, as JSON.
type tableSchema struct {
	Target  string        `json:"target"` // name of the column
	Columns []data.Column `json:"columns"`
	Classes []string      `json:"classes,omitempty"` // of a classification
	// Of a regression: the model predicts (value-Mean)/Deviation.
	Mean      float64 `json:"mean,omitempty"`
	Deviation float64 `json:"deviation,omitempty"`
}

// mostTexts is how many bytes the texts of a schema may take. They are written twice as JSON,
// in which a character takes up to seven bytes, into the header of a file of weights, which
// may have 100 MB.
const mostTexts = 12 << 20

// storable returns an error if the schema does not fit into a file of weights. t is the
// table that it describes.
func (s *tableSchema) storable(t *data.Table) error {
	sum, longest, column := 0, 0, s.Target
	add := func(name string, texts []string) {
		n := len(name)
		for _, text := range texts {
			n += len(text)
		}
		if sum += n; n > longest {
			longest, column = n, name
		}
	}
	add(s.Target, s.Classes)
	for _, c := range s.Columns {
		add(c.Name, c.Categories)
	}
	if sum <= mostTexts {
		return nil
	}
	return fmt.Errorf("%s: the different texts of its columns take %d MB, more than the limit of %d MB; remove columns of free text, such as %q", t.Path, sum>>20, mostTexts>>20, column)
}

// noteSchema is the note that holds a tableSchema.
const noteSchema = "table"

// newSchema returns the schema of a dataset, but for Classes, Mean and Deviation, and the
// index of the target.
func newSchema(d Dataset, task string) (s tableSchema, rows TableDataset, target int, err error) {
	rows, ok := d.(TableDataset)
	if !ok {
		return s, nil, 0, fmt.Errorf("the task %s needs rows with columns, as csv:FILE has; data %q has none", task, d.Info().Name)
	}
	s = tableSchema{Target: d.Info().Options.Target, Columns: rows.Columns()}
	train, _ := rows.Tables()
	if target = train.Table.Index(s.Target); target < 0 {
		return s, nil, 0, fmt.Errorf("data %q has no column %q to predict", d.Info().Name, s.Target)
	}
	return s, rows, target, nil
}

// width returns how many numbers a row becomes.
func (s *tableSchema) width() int { return data.Width(s.Columns) }

// spans returns the parts of a row that columns become, for layers.
func (s *tableSchema) spans() []nn.ColumnSpan {
	spans := make([]nn.ColumnSpan, len(s.Columns))
	for i := range spans {
		spans[i] = nn.ColumnSpan{Width: s.Columns[i].Width(), Categories: len(s.Columns[i].Categories) > 0}
	}
	return spans
}

// notes implements Rows.Notes.
func (s *tableSchema) notes() map[string]string {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // a file of weights has room for a limited number of bytes
	_ = e.Encode(s)        // cannot fail: its numbers are finite
	return map[string]string{noteSchema: strings.TrimSuffix(text.String(), "\n")}
}

// storedSchema returns the schema in notes.
func storedSchema(notes map[string]string) (s tableSchema, err error) {
	if json.Unmarshal([]byte(notes[noteSchema]), &s) != nil || data.CheckColumns(s.Columns) != nil {
		return s, errors.New("its notes do not describe the columns it was trained on")
	}
	return s, nil
}

// fits returns a *MisfitError for a dataset without the columns. It completes the Info of one
// that has them.
func (s *tableSchema) fits(d Dataset) error {
	var rows *data.Table
	switch d := d.(type) {
	case TableDataset:
		_, test := d.Tables()
		rows = test.Table
	case *tableInput:
		rows = d.header
	default:
		return foreignf("csv:FILE", "is for rows with columns, but %s has none", d.Info().Name)
	}
	var names []string
	for _, c := range s.Columns {
		names = append(names, c.Name)
	}
	if why := unlike(rows, names, s.Target); why != "" {
		return misfitf("is for the columns of its training data, but %s %s", d.Info().Name, why)
	}
	if t, ok := d.(*table); ok { // only now is it known how many numbers a row becomes
		t.info.Bytes = rows.Bytes + float64(4*len(t.test.Rows)*s.width())
	}
	return nil
}

// vectors returns rows as numbers, without what is to be learned from them.
func (s *tableSchema) vectors(r TableRows) (*data.Vectors, error) {
	x, err := r.Table.Encode(s.Columns, r.Rows)
	return &data.Vectors{Rows: len(r.Rows), Width: s.width(), X: x}, err
}

// tableExamples are rows for a stored model of tables.
type tableExamples struct {
	rows TableRows     // none if they are read as they are needed
	all  *data.Vectors // rows as numbers
	// vectors are the rows as numbers.
	vectors iter.Seq2[*data.Vectors, error]
	tally   *data.Tally // of the rows read so far
}

// Doubts implements Doubter.
func (e *tableExamples) Doubts() []string { return e.tally.Warnings() }

// examples returns the rows of d, which fits.
func (s *tableSchema) examples(d Dataset) (tableExamples, error) {
	tally := data.NewTally(s.Columns)
	if in, ok := d.(*tableInput); ok {
		return tableExamples{vectors: s.stream(in, tally), tally: tally}, nil
	}
	_, test := d.(TableDataset).Tables()
	tally.Add(test.Table, test.Rows)
	all, err := s.vectors(test)
	return tableExamples{rows: test, all: all, tally: tally, vectors: func(yield func(*data.Vectors, error) bool) { yield(all, nil) }}, err
}

// stream returns rows as numbers as they are needed, and adds them to the tally. It yields the
// rows before a bad one first, and then the error.
func (s *tableSchema) stream(in *tableInput, tally *data.Tally) iter.Seq2[*data.Vectors, error] {
	return func(yield func(*data.Vectors, error) bool) {
		for rows, err := range in.tables(examplesBatch) {
			if err != nil {
				yield(nil, err)
				return
			}
			tally.Add(rows.Table, rows.Rows)
			v, err := s.vectors(rows)
			if err == nil {
				if !yield(v, nil) {
					return
				}
				continue
			}
			for good := 0; ; good++ {
				one := TableRows{Table: rows.Table, Rows: rows.Rows[good : good+1]}
				if v, err = s.vectors(one); !yield(v, err) || err != nil {
					return
				}
			}
		}
	}
}

// labelled calls value for the target of each row.
func (s *tableSchema) labelled(r TableRows, value func(row, column int) error) error {
	column := r.Table.Index(s.Target)
	if column < 0 {
		return fmt.Errorf("%s has no column %q, with which predictions are compared", r.Table.Path, s.Target)
	}
	for _, row := range r.Rows {
		if err := value(int(row), column); err != nil {
			return err
		}
	}
	return nil
}

// memory returns the Memory of rows for training.
func (s *tableSchema) memory(d Dataset) Memory {
	const valueAndPlace = 8 // bytes of what is learned from a row, and of its place in the order of rows
	row := 4 * s.width()
	return Memory{Row: row, Resident: d.Info().Train * (row + valueAndPlace)}
}

// vectorRows are the training and test rows of a table in memory, and what is needed to
// make a task of them.
type vectorRows[B trainer.Batch] struct {
	train, test *data.Vectors
	stage       func(v *data.Vectors, rows int, b nn.Backend) data.Stage[B]
	store       func(v *data.Vectors, rows int, b nn.Backend) data.Store[B]
	measures    []trainer.Measure
}

// task makes a rank's task.
func (r *vectorRows[B]) task(m nn.Model[B], s Seat) (trainer.Task, error) {
	t := &trainer.ModelTask[B]{Model: m, Measures: r.measures}
	withTest(t, s, r.test.Rows, func() data.Stage[B] { return r.stage(r.test, s.EvalBatch, s.Backend) })
	stage := func() data.Stage[B] { return r.stage(r.train, s.Batch, s.Backend) }
	return withTraining(t, s, r.train.Rows, stage, func(sampler *data.Sampler, b nn.Pacer) *data.Resident[B] {
		return data.NewResident(stage(), r.store(r.train, s.Batch, b), sampler, b)
	})
}

// evaluation makes a task without training rows.
func (r *vectorRows[B]) evaluation(m nn.Model[B], b nn.Backend, batch, rank, size int) *trainer.ModelTask[B] {
	test := data.NewPart(r.stage(r.test, batch, b), r.test.Rows, rank, size, batch)
	return &trainer.ModelTask[B]{Model: m, Test: test, Measures: r.measures}
}

// sum identifies the rows and how they became numbers.
func (r *vectorRows[B]) sum(s *tableSchema) string {
	h := sha256.New()
	fmt.Fprintln(h, s.notes()[noteSchema])
	r.train.Hash(h)
	r.test.Hash(h)
	return hex.EncodeToString(h.Sum(nil))
}

// A vectorModel is a model of rows of numbers that predicts.
type vectorModel interface {
	Params() *nn.Params
	Predict(ctx context.Context, x *tensor.Dense) (*tensor.Dense, error)
}

// A vectorPredictor predicts from rows of numbers.
type vectorPredictor struct {
	vectorModel
	rows iter.Seq2[*data.Vectors, error]
	one  func(row int, outputs []float32) (Prediction, error)
}

// All implements Predictor.
func (p *vectorPredictor) All(ctx context.Context) iter.Seq2[Prediction, error] {
	return func(yield func(Prediction, error) bool) {
		row := 0
		for v, err := range p.rows {
			if err != nil {
				yield(nil, err)
				return
			}
			for one, err := range p.some(ctx, v, row) {
				if !yield(one, err) || err != nil {
					return
				}
			}
			row += v.Rows
		}
	}
}

// some returns predictions for rows from number row on.
func (p *vectorPredictor) some(ctx context.Context, v *data.Vectors, row int) iter.Seq2[Prediction, error] {
	return func(yield func(Prediction, error) bool) {
		for lo := 0; lo < v.Rows; lo += examplesBatch {
			n, width := min(examplesBatch, v.Rows-lo), v.Width
			x := tensor.New(tensor.WithShape(n, width), tensor.WithBacking(v.X[lo*width:(lo+n)*width]))
			y, err := p.Predict(ctx, x)
			if err != nil {
				yield(nil, err)
				return
			}
			values, outputs := y.Data().([]float32), y.Shape()[1]
			for i := range n {
				if one, err := p.one(row+lo+i, values[i*outputs:(i+1)*outputs]); !yield(one, err) || err != nil {
					return
				}
			}
		}
	}
}
