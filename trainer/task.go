package trainer

import (
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// A Task is what is trained: a model, this rank's rows, and how results are counted and
// named. The loop knows nothing else about either. Most tasks are a [ModelTask]. A Task
// belongs to one goroutine at a time.
type Task interface {
	// Params returns the parameters of the model, the same on every call.
	Params() *nn.Params
	// Micro returns the number of micro-batches in a step of this rank.
	Micro() int
	// Load prepares the rows of a micro-batch of a step for Learn, and returns their
	// number, which may be 0. Micro-batch k of rank r has the rows of rank r*Micro()+k in
	// a job of size*Micro() ranks.
	Load(step, micro int) (rows int, err error)
	// Learn does what nn.Model.Learn does, for the rows that Load has prepared.
	Learn(p *nn.Pass) (loss nn.Buffer, weight int, err error)
	// Score adds to c what the model counts in this rank's share of the test rows. Over
	// all ranks each row appears once. Every rank counts under the same names, even
	// without rows. A task without test rows adds nothing.
	Score(p *nn.Pass, c nn.Counts) error
	// Metrics returns what to show of the counts of all ranks besides the loss, in the
	// order of columns, the most important first.
	Metrics(total nn.Counts) []Metric
	// Alike lists settings that must be the same on all ranks, in the same order. The
	// Strategy compares them before anything else. It may return nil.
	Alike() []Setting
}

// A Resident is a Task whose rows are in the backend's memory, where a recording finds
// the rows of its steps.
type Resident interface {
	Task
	// Rows returns the number of rows of this rank and of all ranks at a step.
	Rows(step int) (mine, all int)
	// RowWeight returns the weight of every row in LearnAt.
	RowWeight() int
	// Seek prepares the rows of a step and of some steps after it. It returns where the
	// step's rows begin, and how many steps are prepared, which is the same on all
	// ranks.
	Seek(step int) (first, steps int)
	// LearnAt queues the copy of this many rows of the pace's step, and then does what
	// Learn does for them.
	LearnAt(p *nn.Pass, pace nn.Pace, rows int) (loss nn.Buffer, weight int, err error)
}

// A Tracked is a Task that also counts something in training, such as a loss of another kind.
// Strategies and recordings do not know of it.
type Tracked interface {
	Task
	// Track adds to the counts of an evaluation, for Metrics, what this rank has counted in
	// the steps since the last call. Every rank counts under the same names.
	Track(c nn.Counts)
}

// A Metric is a result of an evaluation, such as the accuracy.
type Metric struct {
	Name     string // such as "accuracy"
	Value    float64
	Lower    bool // a lower value is better
	Detail   bool // only for files in JSON, not for screens: there may be many
	Fraction bool // of 1, so that screens may show it in percent
}

// A Measure computes a Metric from the counts of all ranks. It must be finite for finite
// counts, even if they count no rows.
type Measure struct {
	Name     string
	Lower    bool // a lower value is better
	Detail   bool // see Metric
	Fraction bool // see Metric
	Of       func(total nn.Counts) float64
}

// Accuracy is the fraction of rows that a classifier gets right.
var Accuracy = Measure{Name: "accuracy", Fraction: true, Of: func(c nn.Counts) float64 { return c[nn.CountCorrect] / max(c[nn.CountRows], 1) }}

// A Batch is what a Model learns from at a time.
type Batch interface {
	Rows() int // may be 0
}

// Batches provides training rows.
type Batches[B Batch] interface {
	// Batch returns this rank's rows of a step; there may be none. Local row i is row
	// rank + i*size of all ranks' rows of the step. The batch is valid until the next
	// call.
	Batch(step int) (B, error)
}

// ResidentBatches are Batches whose rows are in the backend's memory. Rows and Seek are
// those of a Resident task.
type ResidentBatches[B Batch] interface {
	Batches[B]
	Rows(step int) (mine, all int)
	Seek(step int) (first, steps int)
	// Gather queues the copy of this many rows of the pace's step and returns the batch
	// that will hold them.
	Gather(p nn.Pace, rows int) B
}

// Shard provides this rank's share of the rows of an evaluation. Over all ranks each row
// appears once. A batch is valid until the next one.
type Shard[B Batch] interface {
	All() iter.Seq2[B, error]
}

// A ModelTask is a Task made of a model and its rows.
type ModelTask[B Batch] struct {
	Model    nn.Model[B]
	Train    []Batches[B] // one for each micro-batch
	Test     Shard[B]     // nil: no evaluation
	Measures []Measure

	batch B // from the last Load
}

// NewTask returns a ModelTask with one micro-batch per step. test may be nil.
func NewTask[B Batch](m nn.Model[B], train Batches[B], test Shard[B], measures ...Measure) *ModelTask[B] {
	return &ModelTask[B]{Model: m, Train: []Batches[B]{train}, Test: test, Measures: measures}
}

// Params implements Task.
func (t *ModelTask[B]) Params() *nn.Params { return t.Model.Params() }

// Micro implements Task.
func (t *ModelTask[B]) Micro() int { return len(t.Train) }

// Load implements Task.
func (t *ModelTask[B]) Load(step, micro int) (rows int, err error) {
	if t.batch, err = t.Train[micro].Batch(step); err != nil {
		return 0, err
	}
	return t.batch.Rows(), nil
}

// Learn implements Task.
func (t *ModelTask[B]) Learn(p *nn.Pass) (loss nn.Buffer, weight int, err error) {
	return t.Model.Learn(p, t.batch)
}

// Score implements Task.
func (t *ModelTask[B]) Score(p *nn.Pass, c nn.Counts) error {
	if t.Test == nil {
		return nil
	}
	for _, name := range t.Model.CountNames() {
		c[name] += 0
	}
	for batch, err := range t.Test.All() {
		if err != nil {
			return err
		}
		if err := t.Model.Score(p, batch, c); err != nil {
			return err
		}
	}
	return nil
}

// Metrics implements Task.
func (t *ModelTask[B]) Metrics(total nn.Counts) []Metric {
	out := make([]Metric, len(t.Measures))
	for i, m := range t.Measures {
		out[i] = Metric{Name: m.Name, Value: m.Of(total), Lower: m.Lower, Detail: m.Detail, Fraction: m.Fraction}
	}
	return out
}

// Alike implements Task: there is nothing to compare.
func (t *ModelTask[B]) Alike() []Setting { return nil }

// A ResidentTask is a ModelTask whose training rows are in the backend's memory.
type ResidentTask[B Batch] struct {
	*ModelTask[B]
	rows ResidentBatches[B]
}

// NewResident returns t, which has one micro-batch per step, with rows in place of its
// training rows.
func NewResident[B Batch](t *ModelTask[B], rows ResidentBatches[B]) *ResidentTask[B] {
	t.Train = []Batches[B]{rows}
	return &ResidentTask[B]{ModelTask: t, rows: rows}
}

// Rows implements Resident.
func (t *ResidentTask[B]) Rows(step int) (mine, all int) { return t.rows.Rows(step) }

// RowWeight implements Resident.
func (t *ResidentTask[B]) RowWeight() int {
	if w, ok := t.Model.(nn.Weigher); ok {
		return w.RowWeight()
	}
	return 1
}

// Seek implements Resident.
func (t *ResidentTask[B]) Seek(step int) (first, steps int) { return t.rows.Seek(step) }

// LearnAt implements Resident.
func (t *ResidentTask[B]) LearnAt(p *nn.Pass, pace nn.Pace, rows int) (loss nn.Buffer, weight int, err error) {
	return t.Model.Learn(p, t.rows.Gather(pace, rows))
}

// checkParts returns an error for a Config that lacks a part, or whose task cannot be
// trained.
func (c Config) checkParts() error {
	switch {
	case c.Task == nil:
		return errors.New("trainer: nothing to train: Config.Task is nil")
	case c.Groups == nil:
		return errors.New("trainer: no ranks to train with: Config.Groups is nil")
	case c.Backend == nil:
		return errors.New("trainer: nothing to compute with: Config.Backend is nil")
	case c.Strategy == nil:
		return errors.New("trainer: Config.Strategy is nil: AllReduce is one")
	case c.Steps < 0:
		return fmt.Errorf("trainer: Config.Steps must be at least 0, not %d", c.Steps)
	case c.Eval.Every < 0:
		return fmt.Errorf("trainer: Config.Eval.Every must be at least 0, not %d", c.Eval.Every)
	case c.SaveEvery < 0:
		return fmt.Errorf("trainer: Config.SaveEvery must be at least 0, not %d", c.SaveEvery)
	case c.Reduce > ReduceTotal:
		return fmt.Errorf("trainer: Config.Reduce must be one of the constants, not %v", c.Reduce)
	case c.Task.Micro() < 1:
		return errors.New("trainer: no rows to train on: Config.Task has no micro-batches")
	}
	return nil
}

// finiteMetrics returns an error for a metric that screens and files cannot hold.
func finiteMetrics(metrics []Metric) error {
	for _, m := range metrics {
		if math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
			return fmt.Errorf("the metric %s is %v; a Measure must be finite for finite counts", m.Name, m.Value)
		}
	}
	return nil
}
