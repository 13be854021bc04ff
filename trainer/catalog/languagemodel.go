package catalog

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// languageTask is the name of languageModel.
const languageTask = "language_model.v1"

// languageModel is the Task of predicting the next character of a text. A row is some
// consecutive characters.
type languageModel struct {
	context int
	loss    nn.ClassLoss // nil: cross-entropy
}

// mostContext is far beyond what attention can do, and keeps products of sizes from
// overflowing.
const mostContext = 1 << 20

func makeLanguageModel(a config.Args) (any, error) {
	n := a.Int("context")
	if n < 1 || n > mostContext {
		return nil, a.Errorf("context", "must be from 1 to %d, not %d", mostContext, n)
	}
	l, err := classLoss(a)
	return languageModel{context: n, loss: l}, err
}

// Fit implements Task.
func (t languageModel) Fit(d Dataset, network Network) (Problem, error) {
	text, ok := d.(TextDataset)
	if !ok {
		return nil, fmt.Errorf("the task %s needs text, but data %q has none; use --data text:FILE", languageTask, d.Info().Name)
	}
	p := &textProblem{characterModel: t.characterModel(network, t.context, text.Vocabulary()), dataset: text}
	info := d.Info()
	train, test := p.Rows()
	const short = "the %s of %s has %d characters, but a row needs %d: one more than task.context; %s"
	switch {
	case train < 1:
		return nil, fmt.Errorf(short, "training part", info.Name, info.Train, t.context+1, "lower task.context")
	case test < 1 && info.Test > 0:
		return nil, fmt.Errorf(short, "test part", info.Name, info.Test, t.context+1, "lower task.context or raise --"+OptionHoldout)
	}
	return p, checkSmoothing(t.loss, p.vocabulary.Len())
}

// Stored implements Task. The config of an earlier run says the context too, but not
// if its task had defaults that have changed since.
func (t languageModel) Stored(notes map[string]string, network Network) (Stored, error) {
	n, _ := strconv.Atoi(notes[noteContext])
	v, err := data.ParseVocabulary(notes[noteVocabulary])
	if err != nil || n < 1 || n > mostContext {
		return nil, fmt.Errorf("its notes do not describe the vocabulary and context it was trained with")
	}
	return &storedText{characterModel: t.characterModel(network, n, v)}, nil
}

// Notes of a language model.
const (
	noteVocabulary = "vocabulary" // as data.Vocabulary.String writes it
	noteContext    = "context"    // characters of a row
)

// A characterModel is a network that predicts the next character after each of a row.
type characterModel struct {
	network    Network
	loss       nn.ClassLoss // nil: cross-entropy
	context    int          // characters of a row
	vocabulary *data.Vocabulary
}

func (t languageModel) characterModel(network Network, context int, v *data.Vocabulary) characterModel {
	return characterModel{network: network, loss: t.loss, context: context, vocabulary: v}
}

// sequence describes rows: the classes are the ids of the vocabulary too.
func (m characterModel) sequence() nn.Sequence {
	return nn.Sequence{Positions: m.context, IDs: m.vocabulary.Len(), Classes: m.vocabulary.Len(), Causal: true}
}

// Declare is part of Problem, Rows and Stored.
func (m characterModel) Declare() (*nn.Builder, error) {
	l, err := m.network()
	if err != nil {
		return nil, err
	}
	return m.sequence().Declare(l, 0)
}

// model makes the model on b.
func (m characterModel) model(b nn.Backend, seed uint64) (*nn.PositionClassifier, error) {
	l, err := m.network()
	if err != nil {
		return nil, err
	}
	c, err := nn.NewPositionClassifier(b, l, m.sequence(), seed)
	if err != nil {
		return nil, err
	}
	c.Loss = m.loss
	return c, nil
}

// Probe is part of Problem.
func (m characterModel) Probe(b nn.Backend) (Probe, error) {
	model, err := m.model(b, 0)
	if err != nil {
		return Probe{}, err
	}
	return Probe{Params: model.Params(), Learn: func(p *nn.Pass, rows int) error {
		n := rows * m.context
		_, _, err := model.Learn(p, nn.Batch{X: nn.Tensor{Shape: []int{rows, m.context}, Data: b.AllocInts(n)}, Labels: b.AllocInts(n)})
		return err
	}}, nil
}

// rows returns characters as rows.
func (m characterModel) rows(ids []int32) *data.Text { return &data.Text{IDs: ids, Context: m.context} }

// characterMeasures are the results of an evaluation. Bits are cross-entropy, even if the
// loss is another.
func characterMeasures() []trainer.Measure {
	bits := trainer.Measure{Name: "bits_per_character", Lower: true, Of: func(c nn.Counts) float64 {
		nats, counted := c[nn.CountEntropy]
		if !counted {
			nats = c[nn.CountLoss]
		}
		return nats / max(c[nn.CountRows], 1) / math.Ln2
	}}
	return []trainer.Measure{bits, trainer.Accuracy}
}

// A textProblem is a network that predicts the characters of a dataset.
type textProblem struct {
	characterModel
	dataset TextDataset
}

// Rows implements Problem.
func (p *textProblem) Rows() (train, test int) {
	info := p.dataset.Info()
	return data.TextRows(info.Train, p.context), data.TextRows(info.Test, p.context)
}

// Memory implements Problem. An id takes 4 bytes.
func (p *textProblem) Memory() Memory {
	train, _ := p.Rows()
	return Memory{Row: 2 * 4 * p.context, Resident: 4*p.dataset.Info().Train + 4*train}
}

// Open implements Problem.
func (p *textProblem) Open(ctx context.Context) (Rows, error) {
	train, test, sum, err := p.dataset.Open(ctx, p.vocabulary)
	if err != nil {
		return nil, err
	}
	return &textRows{characterModel: p.characterModel, train: p.rows(train), test: p.rows(test), sum: sum}, nil
}

// textRows are the characters of a dataset in memory.
type textRows struct {
	characterModel
	train, test *data.Text
	sum         string
}

// Sum implements Rows.
func (r *textRows) Sum() string { return r.sum }

// Notes implements Rows.
func (r *textRows) Notes() map[string]string {
	return map[string]string{noteVocabulary: r.vocabulary.String(), noteContext: strconv.Itoa(r.context)}
}

// Task implements Rows.
func (r *textRows) Task(s Seat) (trainer.Task, error) {
	m, err := r.model(s.Backend, s.Seed)
	if err != nil {
		return nil, err
	}
	t := &trainer.ModelTask[nn.Batch]{Model: m, Measures: characterMeasures()}
	withTest(t, s, r.test.Rows(), func() data.Stage[nn.Batch] { return r.test.Stage(s.EvalBatch, s.Backend) })
	return withTraining(t, s, r.train.Rows(),
		func() data.Stage[nn.Batch] { return r.train.Stage(s.Batch, s.Backend) },
		func(sampler *data.Sampler, b nn.Pacer) *data.Resident[nn.Batch] {
			return r.train.Resident(s.Batch, sampler, b)
		})
}
