package catalog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// A Definition says how a task differs from others; NewTask makes a Task of it. Its models
// learn from batches of type B, of the rows of datasets of type D. It suits tasks whose
// shapes are known before rows are read, and whose rows stay in the memory of the host.
type Definition[D Dataset, B trainer.Batch] struct {
	Name string // of the task
	What string // what its rows are, for errors: "points"
	// Shape returns the shapes of one row of the network's input and output.
	Shape func(d D) (in, out []int)
	// Model makes a model.
	Model func(from Blueprint) (Model[B], error)
	// Blank returns a batch of zeros in the memory of b.
	Blank func(b nn.Backend, in, out []int, rows int) B
	// Open reads the rows. Training rows may be missing from a dataset of Catalog.Test or
	// Catalog.Input.
	Open     func(ctx context.Context, d D) (Table[B], error)
	Measures []trainer.Measure // the most important first
}

// A Blueprint is what a model is made from.
type Blueprint struct {
	Backend nn.Backend
	Layer   nn.Layer
	In, Out []int  // shapes of one row of its input and its output
	Seed    uint64 // of the initial weights
}

// Params makes the parameters of the layer. It returns an error if the layer does not take
// In or does not make Out.
func (p Blueprint) Params() (*nn.Params, error) {
	builder, err := p.declare()
	if err != nil {
		return nil, err
	}
	return builder.Build(p.Backend)
}

// declare declares the parameters.
func (p Blueprint) declare() (*nn.Builder, error) {
	b := nn.NewBuilder(p.Seed)
	out, err := p.Layer.Init(p.In, p.Out, b)
	if err == nil && !slices.Equal(out, p.Out) {
		err = &nn.LayerError{Path: b.Path(), Msg: fmt.Sprintf("it makes rows of shape %v, but the task needs %v; change its last layer", out, p.Out)}
	}
	return b, err
}

// A Model is an nn.Model that also predicts.
type Model[B any] interface {
	nn.Model[B]
	// Predict returns the fields of each row of a batch, without its number.
	Predict(p *nn.Pass, batch B) ([]Prediction, error)
}

// A Table is the rows of a dataset.
type Table[B any] struct {
	Sum         string // the same on all ranks that have the same rows, such as a SHA-256
	Train, Test Split[B]
}

// A Split is rows that a rank finds by their number, or that come one after the other.
type Split[B any] struct {
	Rows int
	// Stage returns memory in b for batches of at most room rows.
	Stage func(room int, b nn.Backend) data.Stage[B]
	// Stream returns batches of at most room rows, in order, in the memory of b. A Split
	// of rows to predict may have it instead of Rows and Stage.
	Stream func(room int, b nn.Backend) iter.Seq2[B, error]
}

// batches returns the rows in order.
func (s Split[B]) batches(room int, b nn.Backend) iter.Seq2[B, error] {
	if s.Stream != nil {
		return s.Stream(room, b)
	}
	return data.NewPart(s.Stage(room, b), s.Rows, 0, 1, room).All()
}

// NewTask returns the Task of a Definition.
func NewTask[D Dataset, B trainer.Batch](d Definition[D, B]) Task { return definedTask[D, B]{d} }

type definedTask[D Dataset, B trainer.Batch] struct{ Definition[D, B] }

// Fit implements Task.
func (t definedTask[D, B]) Fit(d Dataset, network Network) (Problem, error) {
	rows, ok := d.(D)
	if !ok {
		return nil, fmt.Errorf("the task %s needs %s; data %q has none: name others with --data", t.Name, t.What, d.Info().Name)
	}
	in, out := t.Shape(rows)
	return &definedProblem[D, B]{defined: defined[D, B]{t.Definition, network, in, out}, dataset: rows}, nil
}

// Stored implements Task.
func (t definedTask[D, B]) Stored(notes map[string]string, network Network) (Stored, error) {
	in, ok1 := parseShape(notes[noteIn])
	out, ok2 := parseShape(notes[noteOut])
	if !ok1 || !ok2 {
		return nil, errors.New("its notes do not describe the shapes of rows it was trained on")
	}
	return &definedStored[D, B]{defined[D, B]{t.Definition, network, in, out}}, nil
}

// Notes of a defined task.
const (
	noteIn  = "in"
	noteOut = "out"
)

// largestRow is more elements than any row has, in an int of 32 bits, too.
const largestRow = min(1<<32, math.MaxInt)

// parseShape reads what formatShape has written. It may come from a damaged file.
func parseShape(text string) (shape []int, ok bool) {
	elements := 1
	for d := range strings.SplitSeq(text, "x") {
		n, err := strconv.Atoi(d)
		if err != nil || n < 1 || n > largestRow/elements {
			return nil, false
		}
		elements *= n
		shape = append(shape, n)
	}
	return shape, true
}

// formatShape returns a shape as text, such as "3x28x28".
func formatShape(shape []int) string {
	dims := make([]string, len(shape))
	for i, d := range shape {
		dims[i] = strconv.Itoa(d)
	}
	return strings.Join(dims, "x")
}

// defined is a network of a defined task, with the shapes of its rows.
type defined[D Dataset, B trainer.Batch] struct {
	Definition[D, B]
	network Network
	in, out []int
}

// Declare is part of Problem, Rows and Stored.
func (t defined[D, B]) Declare() (*nn.Builder, error) {
	l, err := t.network()
	if err != nil {
		return nil, err
	}
	return Blueprint{Layer: l, In: t.in, Out: t.out}.declare()
}

// model makes the model on b.
func (t defined[D, B]) model(b nn.Backend, seed uint64) (Model[B], error) {
	l, err := t.network()
	if err != nil {
		return nil, err
	}
	return t.Model(Blueprint{Backend: b, Layer: l, In: t.in, Out: t.out, Seed: seed})
}

// Probe is part of Problem.
func (t defined[D, B]) Probe(b nn.Backend) (Probe, error) {
	m, err := t.model(b, 0)
	if err != nil {
		return Probe{}, err
	}
	return Probe{Params: m.Params(), Learn: func(p *nn.Pass, rows int) error {
		_, _, err := m.Learn(p, t.Blank(b, t.in, t.out, rows))
		return err
	}}, nil
}

// definedProblem is a network that fits a dataset.
type definedProblem[D Dataset, B trainer.Batch] struct {
	defined[D, B]
	dataset D
}

// Rows implements Problem.
func (p *definedProblem[D, B]) Rows() (train, test int) {
	i := p.dataset.Info()
	return i.Train, i.Test
}

// Memory implements Problem.
func (p *definedProblem[D, B]) Memory() Memory {
	elements := 0
	for _, shape := range [][]int{p.in, p.out} {
		n := 1
		for _, d := range shape {
			n *= d
		}
		elements += n
	}
	return Memory{Row: 4 * elements}
}

// Open implements Problem.
func (p *definedProblem[D, B]) Open(ctx context.Context) (Rows, error) {
	table, err := p.Definition.Open(ctx, p.dataset)
	return &definedRows[D, B]{p.defined, table}, err
}

// definedRows are the rows of a problem.
type definedRows[D Dataset, B trainer.Batch] struct {
	defined[D, B]
	table Table[B]
}

// Sum implements Rows.
func (r *definedRows[D, B]) Sum() string { return r.table.Sum }

// Notes implements Rows.
func (r *definedRows[D, B]) Notes() map[string]string {
	return map[string]string{noteIn: formatShape(r.in), noteOut: formatShape(r.out)}
}

// Task implements Rows.
func (r *definedRows[D, B]) Task(s Seat) (trainer.Task, error) {
	m, err := r.model(s.Backend, s.Seed)
	if err != nil {
		return nil, err
	}
	t := &trainer.ModelTask[B]{Model: m, Measures: r.Measures}
	if test := r.table.Test; test.Rows > 0 {
		withTest(t, s, test.Rows, func() data.Stage[B] { return test.Stage(s.EvalBatch, s.Backend) })
	}
	// Memory().Resident is 0, so no seat asks for resident rows.
	return withTraining(t, s, r.table.Train.Rows, func() data.Stage[B] { return r.table.Train.Stage(s.Batch, s.Backend) }, nil)
}

// definedStored is a stored model of a defined task.
type definedStored[D Dataset, B trainer.Batch] struct{ defined[D, B] }

// Fits implements Stored.
func (s *definedStored[D, B]) Fits(d Dataset) error {
	rows, ok := d.(D)
	if !ok {
		return foreignf(ownData, "is for %s, but %s has none", s.What, d.Info().Name)
	}
	if in, out := s.Shape(rows); !slices.Equal(in, s.in) || !slices.Equal(out, s.out) {
		return foreignf(ownData, "is for %s of shape %v -> %v, but those of %s have %v -> %v", s.What, s.in, s.out, d.Info().Name, in, out)
	}
	return nil
}

// Open implements Stored.
func (s *definedStored[D, B]) Open(ctx context.Context, d Dataset) (Examples, error) {
	rows, ok := d.(D)
	if !ok {
		return nil, s.Fits(d)
	}
	table, err := s.Definition.Open(ctx, rows)
	return &definedExamples[D, B]{s.defined, table.Test}, err
}

// definedExamples are rows for a stored model.
type definedExamples[D Dataset, B trainer.Batch] struct {
	defined[D, B]
	rows Split[B]
}

// Task implements Examples.
func (e *definedExamples[D, B]) Task(b nn.Backend) (trainer.Task, error) {
	m, err := e.model(b, 0)
	if err != nil {
		return nil, err
	}
	if e.rows.Stage == nil {
		return nil, fmt.Errorf("these %s cannot be evaluated, only predicted", e.What)
	}
	test := data.NewPart(e.rows.Stage(examplesBatch, b), e.rows.Rows, 0, 1, examplesBatch)
	return &trainer.ModelTask[B]{Model: m, Test: test, Measures: e.Measures}, nil
}

// Predictor implements Examples.
func (e *definedExamples[D, B]) Predictor(b nn.Backend) (Predictor, error) {
	m, err := e.model(b, 0)
	return &definedPredictor[B]{backend: b, model: m, rows: e.rows}, err
}

// A definedPredictor predicts from the rows of a Split.
type definedPredictor[B any] struct {
	backend nn.Backend
	model   Model[B]
	rows    Split[B]
}

// Params implements Predictor.
func (p *definedPredictor[B]) Params() *nn.Params { return p.model.Params() }

// All implements Predictor. The first field is the row.
func (p *definedPredictor[B]) All(ctx context.Context) iter.Seq2[Prediction, error] {
	return func(yield func(Prediction, error) bool) {
		row := 0
		for batch, err := range p.rows.batches(examplesBatch, p.backend) {
			var all []Prediction
			if err == nil {
				all, err = p.predict(ctx, batch)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, one := range all {
				number := Field{Name: "row", Value: row, Text: strconv.Itoa(row)}
				if !yield(append(Prediction{number}, one...), nil) {
					return
				}
				row++
			}
		}
	}
}

// predict returns the predictions of a batch.
func (p *definedPredictor[B]) predict(ctx context.Context, batch B) (all []Prediction, err error) {
	err = p.backend.Do(ctx, func() error {
		all, err = p.model.Predict(&nn.Pass{Backend: p.backend}, batch)
		if err != nil {
			return err
		}
		return p.backend.Sync(ctx)
	})
	return all, err
}
