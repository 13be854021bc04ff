package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/ner"
	"github.com/ringtrain/ringtrain/nn/text"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job/machine"
)

// entityTask is the Task of finding named entities in documents. A row is a document.
type entityTask struct {
	dropout float32
	cut     int // see ner.Settings, as for the next two
	drop    float32
	last    bool
	batcher *data.WordBatches // nil: as many documents as training.batch_size says
}

// entityTaskFunction makes an entityTask.
var entityTaskFunction = function{nerTask, config.Func{
	Doc: "named entity recognition, as in spaCy: the moves of a transition-based parser",
	Params: []config.Param{
		{Name: "dropout", Type: config.Float, Default: .1, Doc: "fraction of elements dropped in tok2vec; spaCy's training.dropout"},
		{Name: "update_with_oracle_cut_size", Type: config.Int, Default: ner.DefaultCut, Doc: "tokens; longer documents are cut into parts of half to twice as many"},
		{Name: "hidden_dropout", Type: config.Float, Default: ner.DefaultDrop, Doc: "fraction of hidden units dropped; spaCy always drops a tenth"},
		{Name: "last_for_missing", Type: config.Bool, Default: false, Doc: "compute a gradient from the last token of a batch where a state lacks one, as in spaCy; the result then depends on the number of workers"},
		{Name: "batcher", Form: "block with @batchers", Is: func(v any) bool { _, ok := v.(*data.WordBatches); return ok || v == nil },
			Doc: "which documents form a batch; null for training.batch_size documents"},
	},
	Make: func(a config.Args) (any, error) {
		r := &reader{Args: a}
		t := entityTask{
			dropout: r.fraction("dropout"), cut: r.count("update_with_oracle_cut_size"), drop: r.fraction("hidden_dropout"), last: a.Bool("last_for_missing"),
		}
		t.batcher, _ = a.Value("batcher").(*data.WordBatches)
		return t, r.err
	}}}

// Fit implements Task.
func (t entityTask) Fit(d Dataset, network Network) (Problem, error) {
	docs, ok := d.(DocDataset)
	if !ok {
		return nil, fmt.Errorf("the task %s needs documents, but data %q has none; use --data ner:DIR", nerTask, d.Info().Name)
	}
	m, err := t.model(network, ner.Order(docs.Labels()))
	return &entityProblem{entityModel: m, dataset: docs}, err
}

// Stored implements Task.
func (t entityTask) Stored(notes map[string]string, network Network) (Stored, error) {
	var labels []string
	if err := json.Unmarshal([]byte(notes[noteLabels]), &labels); err != nil {
		return nil, errors.New("its notes do not describe the labels of entities it was trained on")
	}
	m, err := t.model(network, labels)
	return &storedEntities{m}, err
}

// noteLabels is the note of an entityModel: its labels, as a list in JSON.
const noteLabels = "labels"

// An entityModel is a network that finds entities of some labels.
type entityModel struct {
	entityTask
	network Network
	moves   *ner.Moves
}

func (t entityTask) model(network Network, labels []string) (entityModel, error) {
	moves, err := ner.NewMoves(labels)
	return entityModel{entityTask: t, network: network, moves: moves}, err
}

// parser makes layers.
func (m entityModel) parser() (ner.Parser, error) {
	l, err := m.network()
	if err != nil {
		return ner.Parser{}, err
	}
	p, ok := l.(*entityParser)
	if !ok {
		return ner.Parser{}, &nn.LayerError{Path: "model", Msg: fmt.Sprintf("the task %s needs @architectures = %q, but this is %T", nerTask, parserArchitecture.name, l)}
	}
	return p.parser(m)
}

// Declare is part of Problem, Rows and Stored.
func (m entityModel) Declare() (*nn.Builder, error) {
	p, err := m.parser()
	if err != nil {
		return nil, err
	}
	return p.Declare(0)
}

// make makes the model on b.
func (m entityModel) make(b nn.Backend, seed uint64) (*ner.Recognizer, error) {
	p, err := m.parser()
	if err != nil {
		return nil, err
	}
	return ner.New(b, p, seed)
}

// documents prepares documents for models.
func (m entityModel) documents(docs []*text.Doc) (entityDocs, error) {
	p, err := m.parser()
	if err != nil {
		return nil, err
	}
	return p.Documents(docs), nil
}

// entityDocs are documents in memory.
type entityDocs []*ner.Document

// stage returns documents as batches.
func (d entityDocs) stage() data.Stage[ner.Batch] {
	var batch ner.Batch
	return func(rows []int32) (ner.Batch, error) {
		batch.Docs = batch.Docs[:0]
		for _, row := range rows {
			batch.Docs = append(batch.Docs, d[row])
		}
		return batch, nil
	}
}

// words returns the number of words of each document.
func (d entityDocs) words() []int32 {
	out := make([]int32, len(d))
	for i, doc := range d {
		out[i] = int32(doc.Len())
	}
	return out
}

// measures are the results of an evaluation: spaCy's ents_f, ents_p and ents_r, of all
// entities and, as details, of those of each label, such as "ents_f:PER".
func (m entityModel) measures() (all []trainer.Measure) {
	for _, label := range append([]string{""}, m.moves.Labels()...) {
		for _, one := range []struct {
			name string
			of   func(ner.Tally) float64
		}{{"ents_f", ner.Tally.F}, {"ents_p", ner.Tally.Precision}, {"ents_r", ner.Tally.Recall}} {
			name := one.name
			if label != "" {
				name += ":" + label
			}
			all = append(all, trainer.Measure{Name: name, Detail: label != "", Fraction: true, Of: func(c nn.Counts) float64 { return one.of(ner.TallyOf(c, label)) }})
		}
	}
	return all
}

// An entityProblem is a network that finds the entities of a dataset.
type entityProblem struct {
	entityModel
	dataset DocDataset
}

// Rows implements Problem.
func (p *entityProblem) Rows() (train, test int) {
	return p.dataset.Info().Train, p.dataset.Info().Test
}

// OwnBatches implements Batcher.
func (p *entityProblem) OwnBatches() bool { return p.batcher != nil }

// each returns the mean number of words of a document to train on.
func (p *entityProblem) each() int {
	words, _ := p.dataset.Words()
	return max(words/max(p.dataset.Info().Train, 1), 1)
}

// Memory implements Problem. An id takes 8 bytes, and so do a word's tag and text.
func (p *entityProblem) Memory() Memory {
	const attributes = 4
	return Memory{Row: 8 * (attributes + 2) * p.each()}
}

// Probe implements Problem.
func (p *entityProblem) Probe(b nn.Backend) (Probe, error) {
	model, err := p.make(b, 0)
	if err != nil {
		return Probe{}, err
	}
	doc := &text.Doc{Words: make([]string, p.each()), Annotated: true}
	for i := range doc.Words {
		doc.Words[i] = fmt.Sprint("word", i)
	}
	docs, err := p.documents([]*text.Doc{doc})
	return Probe{Params: model.Params(), Learn: func(pass *nn.Pass, rows int) error {
		batch, err := docs.stage()(make([]int32, rows))
		if err == nil {
			_, _, err = model.Learn(pass, batch)
		}
		return err
	}}, err
}

// Open implements Problem.
func (p *entityProblem) Open(ctx context.Context) (Rows, error) {
	train, test, sum, err := p.dataset.Open(ctx)
	if err != nil {
		return nil, err
	}
	for _, part := range []struct {
		use  string
		docs []*text.Doc
	}{{"to train on", train}, {"to evaluate on", test}} { // batches have at least one document
		if err := roomForWords(part.docs, 1, float64(machine.Memory())); err != nil {
			return nil, fmt.Errorf("%s: of the documents %s, %w", p.dataset.Info().Name, part.use, err)
		}
	}
	r := &entityRows{entityModel: p.entityModel, sum: sum}
	if r.train, err = p.documents(train); err != nil {
		return nil, err
	}
	if r.test, err = p.documents(test); err == nil && p.batcher != nil { // report a batcher that discards everything before workers start
		_, err = data.NewWordSampler(r.train.words(), *p.batcher, 0, 1, 0)
	}
	return r, err
}

// entityRows are the documents of a dataset in memory.
type entityRows struct {
	entityModel
	train, test entityDocs
	sum         string
}

// Sum implements Rows. The labels follow from the documents.
func (r *entityRows) Sum() string { return r.sum }

// Notes implements Rows.
func (r *entityRows) Notes() map[string]string {
	labels, _ := json.Marshal(r.moves.Labels()) // strings cannot fail
	return map[string]string{noteLabels: string(labels)}
}

// Task implements Rows.
func (r *entityRows) Task(s Seat) (trainer.Task, error) {
	m, err := r.make(s.Backend, s.Seed)
	if err != nil {
		return nil, err
	}
	t := &trainer.ModelTask[ner.Batch]{Model: m, Measures: r.measures()}
	withTest(t, s, len(r.test), r.test.stage)
	words := r.train.words()
	training := &entityTraining{ModelTask: t, model: m}
	for k := range s.Micro {
		if training.order, err = r.order(s, words, k); err != nil {
			return nil, err
		}
		t.Train = append(t.Train, data.NewFeed(r.train.stage(), training.order))
	}
	return training, nil
}

// order returns the order of the documents of a seat's micro-batch. words are those of each
// document.
func (r *entityRows) order(s Seat, words []int32, micro int) (entityOrder, error) {
	rank, size := s.Rank*s.Micro+micro, s.Size*s.Micro
	if r.batcher == nil {
		return data.NewSampler(len(words), s.Batch, rank, size, s.Seed)
	}
	return data.NewWordSampler(words, *r.batcher, rank, size, s.Seed)
}
