package catalog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/ner"
	"github.com/ringtrain/ringtrain/nn/text"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job/machine"
)

// storedEntities is a stored model that finds entities.
type storedEntities struct{ entityModel }

// Fits implements Stored.
func (s *storedEntities) Fits(d Dataset) error {
	if _, ok := d.(DocDataset); !ok {
		return misfitf("finds entities in documents, but %s has none; use --data ner:DIR, or --input-format ner for raw text", d.Info().Name)
	}
	return nil
}

// Open implements Stored.
func (s *storedEntities) Open(ctx context.Context, d Dataset) (Examples, error) {
	_, docs, _, err := d.(DocDataset).Open(ctx)
	if err != nil {
		return nil, err
	}
	if err := roomForWords(docs, entityExamplesBatch, float64(machine.Memory())); err != nil {
		return nil, fmt.Errorf("%s: %w", d.Info().Name, err)
	}
	prepared, err := s.documents(docs)
	return &entityExamples{entityModel: s.entityModel, docs: prepared}, err
}

// wordBytes is about what a model takes per word of the documents that it reads at a time:
// 24 KB with that of examples/ner.cfg.
const wordBytes = 24 << 10

// roomForWords returns an error if the memory is too small for documents, which the model reads
// atATime at once.
func roomForWords(docs []*text.Doc, atATime int, room float64) error {
	row := 0
	for some := range slices.Chunk(docs, atATime) {
		words := 0
		for _, d := range some {
			words += len(d.Words)
		}
		if need := float64(words) * wordBytes; need > room {
			which := fmt.Sprintf("document %d has %d words", row, words)
			if len(some) > 1 {
				which = fmt.Sprintf("documents %d to %d have %d words together", row, row+len(some)-1, words)
			}
			return fmt.Errorf("%s, for which the model takes about %.3g GB, more than the %.3g GB of memory of this machine: split long documents", which, need/1e9, room/1e9)
		}
		row += len(some)
	}
	return nil
}

// entityExamples are documents for a stored model.
type entityExamples struct {
	entityModel
	docs entityDocs
}

// entityExamplesBatch is the number of documents of stored models at a time.
const entityExamplesBatch = 64

func (e *entityExamples) batches() *data.Part[ner.Batch] {
	return data.NewPart(e.docs.stage(), len(e.docs), 0, 1, entityExamplesBatch)
}

// Task implements Examples.
func (e *entityExamples) Task(b nn.Backend) (trainer.Task, error) {
	if !slices.ContainsFunc(e.docs, func(d *ner.Document) bool { return d.Doc.Annotated }) {
		return nil, errors.New("none of these documents is annotated, so predictions cannot be compared with anything")
	}
	m, err := e.make(b, 0)
	return &trainer.ModelTask[ner.Batch]{Model: m, Test: e.batches(), Measures: e.measures()}, err
}

// Predictor implements Examples.
func (e *entityExamples) Predictor(b nn.Backend) (Predictor, error) {
	m, err := e.make(b, 0)
	return &entityPredictor{entityExamples: e, backend: b, model: m}, err
}

// An entityPredictor finds the entities of documents.
type entityPredictor struct {
	*entityExamples
	backend nn.Backend
	model   *ner.Recognizer
}

// Params implements Predictor.
func (p *entityPredictor) Params() *nn.Params { return p.model.Params() }

// All implements Predictor. The fields are row, text and entities. In JSON, entities are
// [start, end, label], in characters of text, so that the lines are a corpus.
func (p *entityPredictor) All(ctx context.Context) iter.Seq2[Prediction, error] {
	return func(yield func(Prediction, error) bool) {
		row := 0
		for batch, err := range p.batches().All() {
			var found [][]text.Span
			if err == nil {
				found, err = p.predict(ctx, batch)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for i, d := range batch.Docs {
				if !yield(entitiesOf(row, d.Doc, found[i]), nil) {
					return
				}
				row++
			}
		}
	}
}

func (p *entityPredictor) predict(ctx context.Context, batch ner.Batch) (found [][]text.Span, err error) {
	err = p.backend.Do(ctx, func() error {
		if found, err = p.model.Predict(&nn.Pass{Backend: p.backend}, batch.Docs); err != nil {
			return err
		}
		return p.backend.Sync(ctx)
	})
	return found, err
}

// entitiesOf returns the entities of a document as a prediction.
func entitiesOf(row int, d *text.Doc, found []text.Span) Prediction {
	offsets, words := d.Offsets(), d.Text()
	chars := []rune(words)
	entities, shown := [][3]any{}, []string{}
	for _, s := range found {
		lo, hi := offsets[s.Start].Start, offsets[s.End-1].End
		entities = append(entities, [3]any{lo, hi, s.Label})
		shown = append(shown, string(chars[lo:hi])+" ("+s.Label+")")
	}
	fields := Prediction{
		{Name: "row", Value: row, Text: strconv.Itoa(row)},
		{Name: "text", Value: words, Text: strconv.Quote(words)},
		{Name: "entities", Value: entities, Text: strings.Join(shown, ", ")},
	}
	if tokens := d.Tokens(); tokens != nil {
		fields = append(fields, Field{Name: "tokens", Value: tokens, Extra: true})
	}
	return fields
}
