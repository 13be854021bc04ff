package catalog

import (
	"context"
	"fmt"
	"iter"
	"strconv"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// storedText is a stored language model.
type storedText struct{ characterModel }

var _ Generative = (*storedText)(nil)

// Fits implements Stored.
func (s *storedText) Fits(d Dataset) error {
	if _, ok := d.(TextDataset); !ok {
		return foreignf("text:FILE", "is for text, but %s has none", d.Info().Name)
	}
	return nil
}

// Open implements Stored.
func (s *storedText) Open(ctx context.Context, d Dataset) (Examples, error) {
	_, ids, _, err := d.(TextDataset).Open(ctx, s.vocabulary)
	if err != nil {
		return nil, err
	}
	known := 0
	for _, id := range ids {
		if id != data.Unknown {
			known++
		}
	}
	if known == 0 {
		return nil, misfitf("knows none of the characters of %s", d.Info().Name)
	}
	return &textExamples{characterModel: s.characterModel, name: d.Info().Name, ids: ids}, nil
}

// textExamples are the characters of a text for a stored model.
type textExamples struct {
	characterModel
	name string // of the text
	ids  []int32
}

// The characters of stored models at a time, and their outputs: each has one for each
// character of the vocabulary.
const (
	textExamplesBatch   = 1 << 14
	textExamplesOutputs = 1 << 22
)

// batch returns the number of rows at a time.
func (m characterModel) batch() int {
	return max(min(textExamplesBatch, textExamplesOutputs/m.vocabulary.Len())/m.context, 1)
}

// Task implements Examples.
func (e *textExamples) Task(b nn.Backend) (trainer.Task, error) {
	m, err := e.model(b, 0)
	if err != nil {
		return nil, err
	}
	text := e.rows(e.ids)
	if text.Rows() == 0 {
		return nil, fmt.Errorf("%s has only %d characters, but the model is for rows of %d and the character after them; use a longer text", e.name, len(e.ids), e.context)
	}
	test := data.NewPart(text.Stage(e.batch(), b), text.Rows(), 0, 1, e.batch())
	return &trainer.ModelTask[nn.Batch]{Model: m, Test: test, Measures: characterMeasures()}, nil
}

// Predictor implements Examples.
func (e *textExamples) Predictor(b nn.Backend) (Predictor, error) {
	m, err := e.model(b, 0)
	return &textPredictor{textExamples: e, model: m}, err
}

// A textPredictor predicts each character of a text from those before it in its row.
type textPredictor struct {
	*textExamples
	model *nn.PositionClassifier
}

// Params implements Predictor.
func (p *textPredictor) Params() *nn.Params { return p.model.Params() }

// All implements Predictor. The fields are position, from 0; the character there and its
// probability; and the most probable character. There is no prediction of the first
// character. A row at the end that is not full ends in any character, which a causal model
// does not see before.
func (p *textPredictor) All(ctx context.Context) iter.Seq2[Prediction, error] {
	return func(yield func(Prediction, error) bool) {
		each := p.batch() * p.context
		for lo, end := 0, len(p.ids)-1; lo < end; lo += each {
			hi := min(lo+each, end)
			rows := (hi - lo + p.context - 1) / p.context
			x := make([]int32, rows*p.context)
			copy(x, p.ids[lo:hi])
			probs, err := p.model.Predict(ctx, x)
			if err != nil {
				yield(nil, err)
				return
			}
			classes := p.vocabulary.Len()
			for i := range hi - lo {
				if one, err := p.nextOf(lo+i+1, probs[i*classes:(i+1)*classes]); !yield(one, err) || err != nil {
					return
				}
			}
		}
	}
}

// nextOf returns the prediction of the character at a position.
func (p *textPredictor) nextOf(position int, probabilities []float32) (Prediction, error) {
	best := mostProbable(probabilities)
	if best < 0 {
		return nil, fmt.Errorf("position %d has no probability: the weights are finite, but too large to compute with", position)
	}
	actual := p.ids[position]
	one := probabilities[actual]
	return Prediction{
		{Name: "position", Value: position, Text: strconv.Itoa(position)},
		p.field("character", actual),
		{Name: "probability", Value: one, Text: fmt.Sprintf("%.4f", one)},
		p.field("predicted", int32(best)),
	}, nil
}

// field holds a character. An unknown one is null.
func (p *textPredictor) field(name string, id int32) Field {
	if id == data.Unknown {
		return Field{Name: name, Value: nil, Text: "unknown"}
	}
	c := string(p.vocabulary.Char(id))
	return Field{Name: name, Value: c, Text: strconv.Quote(c)}
}

// mostProbable returns the index of the largest probability, or -1 if there is none above
// 0.
func mostProbable(probabilities []float32) int {
	best, most := -1, float32(0)
	for i, p := range probabilities {
		if p > most {
			best, most = i, p
		}
	}
	return best
}
