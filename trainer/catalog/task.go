package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// Network makes the layers of a config. Layers belong to one model, so each model needs
// its own.
type Network func() (nn.Layer, error)

// A Task turns networks and datasets into something to train. Configs name one under
// @tasks in their section [task]. Without that section the dataset decides.
type Task interface {
	// Fit returns the problem of training network on d. Its errors are the user's
	// mistakes: a dataset that the task cannot use, or a network that does not fit it.
	Fit(d Dataset, network Network) (Problem, error)
	// Stored returns the model that notes describe. They are Rows.Notes of an earlier
	// training, and may come from a damaged file.
	Stored(notes map[string]string, network Network) (Stored, error)
}

// A Problem is a network that fits a dataset. No rows are in memory yet.
type Problem interface {
	// Declare returns the parameters of the model without memory. Those of the opened
	// Rows may have other sizes where only the rows tell them.
	Declare() (*nn.Builder, error)
	// Rows returns the number of rows to train on and to evaluate. They differ from those of
	// the dataset's Info if the task makes its own rows, such as those of a text.
	Rows() (train, test int)
	// Memory returns what rows take.
	Memory() Memory
	// Probe makes the model on b, for measuring what a step takes.
	Probe(b nn.Backend) (Probe, error)
	// Open reads the rows. It generates them first if necessary.
	Open(ctx context.Context) (Rows, error)
}

// A Batcher is a Problem that may choose the rows of each batch itself, whatever
// training.batch_size says. OwnBatches reports whether it does.
type Batcher interface {
	Problem
	OwnBatches() bool
}

// Memory is what rows take in memory, in bytes.
type Memory struct {
	Row int // one row of a batch, with its label
	// Resident is all training rows in the memory of a device, where steps can be
	// recorded; 0 if the task cannot place them there.
	Resident int
}

// A Probe is a model that learns from rows of zeros.
type Probe struct {
	Params *nn.Params
	Learn  func(p *nn.Pass, rows int) error
}

// Rows are the rows of a Problem in memory. Several ranks of a process may share them.
type Rows interface {
	// Sum identifies the rows: it is the same on all ranks that have the same ones.
	Sum() string
	// Notes describe the model to Task.Stored.
	Notes() map[string]string
	// Declare returns the parameters of the model without memory.
	Declare() (*nn.Builder, error)
	// Task makes a rank's task. With Seat.Resident it is a trainer.Resident.
	Task(s Seat) (trainer.Task, error)
}

// A Stored model is what a file of weights says about itself. It has no memory yet.
type Stored interface {
	// Declare returns the parameters of the model without memory.
	Declare() (*nn.Builder, error)
	// Fits returns a *MisfitError if the model cannot be used with rows of d, as far as
	// headers tell.
	Fits(d Dataset) error
	// Open reads the rows of d, which fits. It returns a *MisfitError if only the rows show
	// that the model cannot be used with them.
	Open(ctx context.Context, d Dataset) (Examples, error)
}

// A MisfitError says why a stored model cannot be used with rows. Its text goes after the
// name of the file: "is for images, but ...".
type MisfitError struct {
	Text string
	Data string // which --data to use instead, for rows of --data; may be empty
}

// Error returns the text and the advice.
func (e *MisfitError) Error() string {
	if e.Data == "" {
		return e.Text
	}
	return e.Text + "; use --data " + e.Data
}

func misfitf(format string, args ...any) error {
	return &MisfitError{Text: fmt.Sprintf(format, args...)}
}

// foreignf is misfitf for rows of --data that are of another kind than those of the training.
func foreignf(data, format string, args ...any) error {
	return &MisfitError{Text: fmt.Sprintf(format, args...), Data: data}
}

// ownData is the Data of a MisfitError of a model that does not know what to call it.
const ownData = "with the data it was trained on"

// Examples are rows for a stored model.
type Examples interface {
	// Task makes a task whose test rows are all of them. Its model has initial weights.
	Task(b nn.Backend) (trainer.Task, error)
	// Predictor makes a model with initial weights that predicts from all of them.
	Predictor(b nn.Backend) (Predictor, error)
}

// A Doubter is Examples that may have doubts about the rows.
type Doubter interface {
	// Doubts returns warnings about the rows that have been read so far, each one line.
	Doubts() []string
}

// A Predictor predicts from rows.
type Predictor interface {
	Params() *nn.Params
	// All returns a prediction for each row, in order.
	All(ctx context.Context) iter.Seq2[Prediction, error]
}

// A Prediction is what a model says about a row: fields in the order of columns, the same
// for every row.
type Prediction []Field

// MarshalJSON implements json.Marshaler: an object with the fields in their order.
func (p Prediction) MarshalJSON() ([]byte, error) {
	out := []byte("{")
	for i, f := range p {
		name, err := json.Marshal(f.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(f.Value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), nil
}

// A Field is a named value of a Prediction.
type Field struct {
	Name  string
	Value any    // as in JSON
	Text  string // as in a table
	Extra bool   // some rows have it, in JSON alone
}

// Problem returns the problem of training the network of a config on a dataset.
func (c *Catalog) Problem(cfg *config.Config, d Dataset) (Problem, error) {
	t, err := c.task(cfg, d.Task())
	if err != nil {
		return nil, err
	}
	p, err := t.Fit(d, c.network(cfg))
	return p, c.Locate(cfg, err)
}

// Stored returns the model that the notes of a file of weights describe, which name the
// config and the task.
func (c *Catalog) Stored(notes map[string]string) (Stored, *config.Config, error) {
	cfg, err := config.Parse("config", notes[noteConfig], nil)
	if err != nil {
		return nil, nil, fmt.Errorf("the config in it: %w", err)
	}
	name := notes[noteTask]
	if name == "" {
		name = imageTask // files of older versions do not say it
	}
	t, err := c.task(cfg, name)
	if err != nil {
		return nil, nil, err
	}
	s, err := t.Stored(notes, c.network(cfg))
	return s, cfg, err
}

// Notes that Stored reads itself.
const (
	noteConfig = "config"
	noteTask   = "task"
)

// Notes returns what a file of weights must say about a run on d, for Stored.
func Notes(cfg *config.Config, d Dataset, rows Rows) map[string]string {
	notes := map[string]string{noteConfig: cfg.Text(), noteTask: d.Task(), "data": d.Info().Name, "data_sha256": rows.Sum()}
	for _, option := range d.Info().Options.List() {
		if option.Value != "" {
			notes[option.Name] = option.Value
		}
	}
	for name, value := range rows.Notes() {
		notes[name] = value
	}
	return notes
}

// task returns the task of a config or, if it names none, the one with the given name.
func (c *Catalog) task(cfg *config.Config, name string) (Task, error) {
	if _, named := cfg.Entry("task"); named {
		return resolve[Task](c, cfg, "task", "a task (@tasks)")
	}
	cfg, err := config.Parse("task", "[task]\n@tasks = \""+name+"\"\n", nil)
	if err != nil {
		return nil, err
	}
	t, err := resolve[Task](c, cfg, "task", "a task (@tasks)")
	if mistake := (*config.Error)(nil); errors.As(err, &mistake) { // its position is in no file
		return nil, fmt.Errorf("the rows are for the task %s, which this config does not describe: add a section [task] (%s)", name, mistake.Msg)
	}
	return t, err
}

// network returns the Network of the [model] section of a config.
func (c *Catalog) network(cfg *config.Config) Network {
	return func() (nn.Layer, error) { return c.Layers(cfg) }
}
