package catalog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// regressionTask is the name of tableRegression.
const regressionTask = "regression.v1"

// tableRegression is the Task of predicting a number from a row. The model predicts the
// standardised number: without the mean of the training rows, and divided by their
// deviation.
type tableRegression struct{ loss nn.ValueLoss }

// Fit implements Task.
func (t tableRegression) Fit(d Dataset, network Network) (Problem, error) {
	schema, rows, target, err := newSchema(d, regressionTask)
	if err != nil {
		return nil, err
	}
	train, _ := rows.Tables()
	if schema.Mean, schema.Deviation, err = train.Table.Moments(target, train.Rows); err != nil {
		return nil, err
	}
	return &tableValues{regressor: regressor{network: network, loss: t.loss, schema: schema}, dataset: rows}, schema.storable(train.Table)
}

// Stored implements Task.
func (t tableRegression) Stored(notes map[string]string, network Network) (Stored, error) {
	schema, err := storedSchema(notes)
	if err == nil && !(schema.Deviation > 0) {
		err = errors.New("its notes do not describe the values it was trained on")
	}
	return &storedValues{regressor{network: network, loss: t.loss, schema: schema}}, err
}

// A regressor is a network that predicts a number from a row.
type regressor struct {
	network Network
	loss    nn.ValueLoss // nil: squared error
	schema  tableSchema
}

// Declare is part of Problem, Rows and Stored.
func (r regressor) Declare() (*nn.Builder, error) {
	l, err := r.network()
	if err != nil {
		return nil, err
	}
	b := r.builder(0)
	in := []int{r.schema.width()}
	err = nn.DeclareRegressor(l, in, 1, b)
	if err == nil {
		return b, nil
	}
	if l, other := r.network(); other == nil && nn.DeclareClassifier(l, in, 2, r.builder(0)) == nil {
		return nil, fmt.Errorf("this network predicts classes, but the task is %s, because the column %q has only numbers: "+
			"end the network in Linear, or name %s under @tasks in a section [task]", regressionTask, r.schema.Target, classificationTask)
	}
	return nil, err
}

// builder returns a Builder that knows the columns.
func (r regressor) builder(seed uint64) *nn.Builder {
	b := nn.NewBuilder(seed)
	b.TakesColumns(r.schema.spans())
	return b
}

// model makes the model on b.
func (r regressor) model(b nn.Backend, seed uint64) (*nn.Regressor, error) {
	l, err := r.network()
	if err != nil {
		return nil, err
	}
	m, err := nn.BuildRegressor(b, l, []int{r.schema.width()}, 1, r.builder(seed))
	if err != nil {
		return nil, err
	}
	m.Loss = r.loss
	return m, nil
}

// Probe is part of Problem.
func (r regressor) Probe(b nn.Backend) (Probe, error) {
	m, err := r.model(b, 0)
	if err != nil {
		return Probe{}, err
	}
	return Probe{Params: m.Params(), Learn: func(p *nn.Pass, rows int) error {
		width := r.schema.width()
		_, _, err := m.Learn(p, nn.Targets{
			X: nn.Tensor{Shape: []int{rows, width}, Data: b.Alloc(rows * width)},
			Y: nn.Tensor{Shape: []int{rows, 1}, Data: b.Alloc(rows)},
		})
		return err
	}}, nil
}

// valued returns rows as numbers, with the standardised value of each.
func (s *tableSchema) valued(r TableRows) (*data.Vectors, error) {
	v, err := s.vectors(r)
	if err != nil {
		return nil, err
	}
	return v, s.value(v, r)
}

// value adds the standardised values of rows to v.
func (s *tableSchema) value(v *data.Vectors, r TableRows) error {
	v.Values = nil
	return s.labelled(r, func(row, column int) error {
		value, err := r.Table.Value(row, column)
		if err != nil {
			return err
		}
		v.Values = append(v.Values, float32((value-s.Mean)/s.Deviation))
		return nil
	})
}

// valued returns rows with values.
func (r regressor) valued(train, test *data.Vectors) vectorRows[nn.Targets] {
	return vectorRows[nn.Targets]{train, test, (*data.Vectors).Valued, (*data.Vectors).ValuedStore, []trainer.Measure{
		determination(test.Values), rootMeanSquare(r.schema.Deviation),
	}}
}

// determination is R², the coefficient of determination: the fraction of the variance of
// the test values that predictions explain. It is below 0 for predictions that are worse
// than the mean of the test values. If these are all equal, it is 1 for perfect
// predictions and 0 for others, as in scikit-learn.
//
// The variance is computed here, where the values are: the difference between the sums that
// a model counts, in float32, is inexact if the values are far from those of training.
func determination(test []float32) trainer.Measure {
	mean, total := 0., 0.
	for _, v := range test {
		mean += float64(v) / float64(len(test))
	}
	for _, v := range test {
		d := float64(v) - mean
		total += float64(d * d)
	}
	if len(test) > 0 && slices.Min(test) == slices.Max(test) {
		total = 0 // without the rounding of mean
	}
	return trainer.Measure{Name: "r2", Of: func(c nn.Counts) float64 {
		residual := squaredErrors(c)
		switch {
		case total > 0:
			return 1 - residual/total
		case residual == 0:
			return 1
		}
		return 0
	}}
}

// rootMeanSquare is the root of the mean squared error of predictions, in units of the
// target.
func rootMeanSquare(deviation float64) trainer.Measure {
	return trainer.Measure{Name: "rmse", Lower: true, Of: func(c nn.Counts) float64 {
		return deviation * math.Sqrt(squaredErrors(c)/max(c[nn.CountRows], 1))
	}}
}

// squaredErrors is the sum of squared errors, whatever the loss is.
func squaredErrors(c nn.Counts) float64 {
	if sum, counted := c[nn.CountErrors]; counted {
		return sum
	}
	return 2 * c[nn.CountLoss]
}

// tableValues is the Problem of a network that predicts a column of a dataset.
type tableValues struct {
	regressor
	dataset TableDataset
}

// Rows implements Problem.
func (p *tableValues) Rows() (train, test int) { return p.dataset.Info().Train, p.dataset.Info().Test }

// Memory implements Problem.
func (p *tableValues) Memory() Memory { return p.schema.memory(p.dataset) }

// Open implements Problem.
func (p *tableValues) Open(context.Context) (Rows, error) {
	trainRows, testRows := p.dataset.Tables()
	train, err := p.schema.valued(trainRows)
	if err != nil {
		return nil, err
	}
	test, err := p.schema.valued(testRows)
	if err != nil {
		return nil, err
	}
	return &valueRows{regressor: p.regressor, vectorRows: p.valued(train, test)}, nil
}

// valueRows are the Rows of a regression.
type valueRows struct {
	regressor
	vectorRows[nn.Targets]
}

// Sum implements Rows.
func (r *valueRows) Sum() string { return r.sum(&r.schema) }

// Notes implements Rows.
func (r *valueRows) Notes() map[string]string { return r.schema.notes() }

// Task implements Rows.
func (r *valueRows) Task(s Seat) (trainer.Task, error) {
	m, err := r.model(s.Backend, s.Seed)
	if err != nil {
		return nil, err
	}
	return r.task(m, s)
}

// storedValues is a stored model that predicts numbers.
type storedValues struct{ regressor }

// Fits implements Stored.
func (s *storedValues) Fits(d Dataset) error { return s.schema.fits(d) }

// Open implements Stored.
func (s *storedValues) Open(_ context.Context, d Dataset) (Examples, error) {
	rows, err := s.schema.examples(d)
	return &valueExamples{regressor: s.regressor, tableExamples: rows}, err
}

// valueExamples are rows for a stored model.
type valueExamples struct {
	regressor
	tableExamples
}

// Task implements Examples.
func (e *valueExamples) Task(b nn.Backend) (trainer.Task, error) {
	if e.rows.Table == nil {
		return nil, errNoLabels
	}
	if err := e.schema.value(e.all, e.rows); err != nil {
		return nil, err
	}
	m, err := e.model(b, 0)
	if err != nil {
		return nil, err
	}
	rows := e.valued(nil, e.all)
	return rows.evaluation(m, b, examplesBatch, 0, 1), nil
}

// Predictor implements Examples. The fields are row and value.
func (e *valueExamples) Predictor(b nn.Backend) (Predictor, error) {
	m, err := e.model(b, 0)
	if err != nil {
		return nil, err
	}
	return &vectorPredictor{vectorModel: m, rows: e.vectors, one: func(row int, outputs []float32) (Prediction, error) {
		value := float64(float64(outputs[0])*e.schema.Deviation) + e.schema.Mean
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return nil, fmt.Errorf("row %d has no finite value: its numbers or the weights are finite, but too large to compute with", row)
		}
		return Prediction{
			{Name: "row", Value: row, Text: strconv.Itoa(row)},
			{Name: "value", Value: value, Text: strconv.FormatFloat(value, 'g', 6, 64)},
		}, nil
	}}, nil
}
