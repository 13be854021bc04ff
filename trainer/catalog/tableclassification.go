package catalog

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// classificationTask is the name of tableClassification.
const classificationTask = "classification.v1"

// tableClassification is the Task of finding the class of a row. Classes are the different
// texts in the target column.
type tableClassification struct{ loss nn.ClassLoss }

// Fit implements Task.
func (t tableClassification) Fit(d Dataset, network Network) (Problem, error) {
	schema, rows, target, err := newSchema(d, classificationTask)
	if err != nil {
		return nil, err
	}
	train, _ := rows.Tables()
	if schema.Classes, err = train.Table.Classes(target); err != nil {
		return nil, err
	}
	if err := schema.storable(train.Table); err != nil {
		return nil, err
	}
	doubtClasses(d, target, len(schema.Classes))
	return &tableClasses{classifier: t.classifier(network, &schema), schema: schema, dataset: rows}, checkSmoothing(t.loss, len(schema.Classes))
}

// doubtClasses warns of a target that hardly is one of classes.
func doubtClasses(d Dataset, target, classes int) {
	own, ok := d.(*table)
	if !ok {
		return
	}
	t := own.train.Table
	all, advice := data.Range(nil, 0, t.Rows()), "each becomes a class: choose another --target"
	if t.Numeric(target, all) {
		advice = "each becomes a class: did you mean regression.v1?"
	}
	own.doubt([]string{cmp.Or(t.Doubt(target, all), t.DoubtTexts(target, all, classes, advice))})
}

// Stored implements Task.
func (t tableClassification) Stored(notes map[string]string, network Network) (Stored, error) {
	schema, err := storedSchema(notes)
	sorted := slices.Clone(schema.Classes)
	slices.Sort(sorted)
	switch {
	case err != nil:
		return nil, err
	case len(sorted) < 2 || len(slices.Compact(sorted)) < len(schema.Classes):
		return nil, errors.New("its notes do not describe the classes it was trained on")
	}
	return &storedClasses{classifier: t.classifier(network, &schema), schema: schema}, nil
}

func (t tableClassification) classifier(network Network, s *tableSchema) classifier {
	return classifier{network: network, loss: t.loss, features: s.width(), classes: len(s.Classes), columns: s.spans()}
}

// tableClasses is the Problem of a network that classifies the rows of a dataset.
type tableClasses struct {
	classifier
	schema  tableSchema
	dataset TableDataset
}

// Rows implements Problem.
func (p *tableClasses) Rows() (train, test int) { return p.dataset.Info().Train, p.dataset.Info().Test }

// Memory implements Problem.
func (p *tableClasses) Memory() Memory { return p.schema.memory(p.dataset) }

// Open implements Problem.
func (p *tableClasses) Open(context.Context) (Rows, error) {
	train, test := p.dataset.Tables()
	r := &classRows{classifier: p.classifier, schema: p.schema}
	var err error
	if r.train, err = p.schema.classified(train); err != nil {
		return nil, err
	}
	if r.test, err = p.schema.classified(test); err != nil {
		return nil, err
	}
	r.vectorRows = classified(r.train, r.test)
	return r, nil
}

// classified returns rows as numbers with their classes.
func (s *tableSchema) classified(r TableRows) (*data.Vectors, error) {
	v, err := s.vectors(r)
	if err != nil {
		return nil, err
	}
	return v, s.classify(v, r)
}

// classify adds the classes of rows to v.
func (s *tableSchema) classify(v *data.Vectors, r TableRows) error {
	class := map[string]int32{}
	for i, text := range s.Classes {
		class[text] = int32(i)
	}
	v.Labels = nil
	return s.labelled(r, func(row, column int) error {
		text := r.Table.Cells[row][column]
		at, known := class[text]
		if !known {
			return r.Table.Errorf(row, column, "%.60q is no class of the training data", text)
		}
		v.Labels = append(v.Labels, at)
		return nil
	})
}

// classified returns rows with classes.
func classified(train, test *data.Vectors) vectorRows[nn.Batch] {
	return vectorRows[nn.Batch]{train, test, (*data.Vectors).Labelled, (*data.Vectors).LabelledStore, []trainer.Measure{trainer.Accuracy}}
}

// classRows are the Rows of a classification.
type classRows struct {
	classifier
	schema tableSchema
	vectorRows[nn.Batch]
}

// Sum implements Rows.
func (r *classRows) Sum() string { return r.sum(&r.schema) }

// Notes implements Rows.
func (r *classRows) Notes() map[string]string { return r.schema.notes() }

// Task implements Rows.
func (r *classRows) Task(s Seat) (trainer.Task, error) {
	m, err := r.model(s.Backend, s.Seed)
	if err != nil {
		return nil, err
	}
	return r.task(m, s)
}

// storedClasses is a stored model that classifies rows.
type storedClasses struct {
	classifier
	schema tableSchema
}

// Fits implements Stored.
func (s *storedClasses) Fits(d Dataset) error { return s.schema.fits(d) }

// Open implements Stored.
func (s *storedClasses) Open(_ context.Context, d Dataset) (Examples, error) {
	rows, err := s.schema.examples(d)
	return &classExamples{storedClasses: s, tableExamples: rows}, err
}

// classExamples are rows for a stored model.
type classExamples struct {
	*storedClasses
	tableExamples
}

// Task implements Examples.
func (e *classExamples) Task(b nn.Backend) (trainer.Task, error) {
	if e.rows.Table == nil {
		return nil, errNoLabels
	}
	if err := e.schema.classify(e.all, e.rows); err != nil {
		return nil, err
	}
	m, err := e.model(b, 0)
	if err != nil {
		return nil, err
	}
	rows := classified(nil, e.all)
	return rows.evaluation(m, b, examplesBatch, 0, 1), nil
}

// Predictor implements Examples. The fields are row, class and probability.
func (e *classExamples) Predictor(b nn.Backend) (Predictor, error) {
	m, err := e.model(b, 0)
	if err != nil {
		return nil, err
	}
	return &vectorPredictor{vectorModel: m, rows: e.vectors, one: func(row int, probabilities []float32) (Prediction, error) {
		p, err := classOf(row, probabilities)
		if err == nil {
			label := e.schema.Classes[p[1].Value.(int)]
			p[1].Value, p[1].Text = label, cell(label)
		}
		return p, err
	}}, nil
}
