package ner

import (
	"errors"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/text"
)

// A Recognizer is the model: an nn.Model of documents. Its loss is summed over the states of
// a batch, one for each token that is learned from, and the weight is their number. States
// are computed on the host, whatever the backend, so steps cannot be recorded on a GPU.
type Recognizer struct {
	moves   *Moves
	columns int // ids of a token
	encoder nn.Layer
	network *network
	params  *nn.Params
	loss    nn.Buffer // 1 element
	squares float64

	reader    *reader
	tape      tape
	gradients gradients
	ids       []uint64
	lengths   []int
	parts     []part
}

var _ nn.Model[Batch] = (*Recognizer)(nil)

// New builds a model on b. See [Parser.Declare].
func New(b nn.Backend, p Parser, seed uint64) (*Recognizer, error) {
	declared, n, err := p.declare(seed)
	if err != nil {
		return nil, err
	}
	params, err := declared.Build(b)
	if err != nil {
		return nil, err
	}
	return &Recognizer{
		moves: p.Moves, columns: len(p.Attrs), encoder: p.Encoder, network: n, params: params, loss: b.Alloc(1), reader: newReader(n, p.Moves),
	}, nil
}

// Params implements nn.Model.
func (r *Recognizer) Params() *nn.Params { return r.params }

// Squares returns the sum of the squared gradients of scores in the last Learn, which spaCy
// prints as LOSS NER.
func (r *Recognizer) Squares() float64 { return r.squares }

// Learn implements nn.Model. It follows the moves that it predicts. A document without tags
// adds nothing.
func (r *Recognizer) Learn(p *nn.Pass, b Batch) (loss nn.Buffer, weight int, err error) {
	if err := check(p); err != nil {
		return nn.Buffer{}, 0, err
	}
	be := p.Backend
	be.Recycle()
	length := chopLength(r.network.Cut, r.network.chopper, p.Random)
	rows := r.split(b.Docs, func(to []chunk, d *document) []chunk { return r.moves.chop(to, d, length) })
	sum := 0.
	if r.squares = 0; rows > 0 {
		vectors, back := r.encode(p, b.Docs)
		x, backLinear := r.network.linear.Forward(p, vectors)
		if r.reader.random = nil; p.Train {
			r.reader.random = &p.Random
		}
		r.reader.load(be, r.network.multiply(be, x))
		r.tape.grow(be, r.network, rows)
		row := 0
		for _, part := range r.parts {
			sum += r.reader.read(part, &r.tape, row, true, nil)
			row += part.stop - part.next
		}
		for _, d := range r.tape.dscores.host {
			r.squares += float64(float64(d) * float64(d)) // the conversion forbids fused arithmetic
		}
		back(backLinear(r.network.backward(p, x, &r.tape, rows, &r.gradients)))
	}
	be.Copy(r.loss, []float32{float32(sum)})
	if p.Final != nil {
		p.Final(0)
	}
	return r.loss, rows, nil
}

// Predict returns the entities of each document.
func (r *Recognizer) Predict(p *nn.Pass, docs []*Document) ([][]text.Span, error) {
	found, _, err := r.read(p, docs)
	return found, err
}

// read returns the entities that the model finds in each document, and the loss of its states.
func (r *Recognizer) read(p *nn.Pass, docs []*Document) (found [][]text.Span, losses []float64, err error) {
	if err := check(p); err != nil {
		return nil, nil, err
	}
	quiet := *p
	quiet.Train = false
	quiet.Backend.Recycle()
	found, losses = make([][]text.Span, len(docs)), make([]float64, len(docs))
	if r.split(docs, whole) == 0 {
		return found, losses, nil
	}
	vectors, _ := r.encode(&quiet, docs)
	x, _ := r.network.linear.Forward(&quiet, vectors)
	r.reader.random = nil
	r.reader.load(quiet.Backend, r.network.multiply(quiet.Backend, x))
	r.tape.grow(quiet.Backend, r.network, 1)
	for _, part := range r.parts {
		losses[part.row] = r.reader.read(part, &r.tape, 0, false, func(e entity) { found[part.row] = append(found[part.row], r.moves.span(e)) })
	}
	return found, losses, nil
}

// whole is a document in one part.
func whole(to []chunk, d *document) []chunk {
	if len(d.gold) == 0 {
		return to
	}
	return append(to, chunk{start(len(d.gold)), len(d.gold)})
}

// split sets r.parts to those of documents, and returns the number of their states.
func (r *Recognizer) split(docs []*Document, chop func([]chunk, *document) []chunk) (states int) {
	r.parts = r.parts[:0]
	first := 0
	var chunks []chunk
	for row, d := range docs {
		chunks = chop(chunks[:0], &d.document)
		for _, c := range chunks {
			r.parts = append(r.parts, part{chunk: c, document: &d.document, row: row, first: first})
			states += c.stop - c.next
		}
		first += d.Len()
	}
	return states
}

// encode returns a vector for each token. At least one document has tokens.
func (r *Recognizer) encode(p *nn.Pass, docs []*Document) (nn.Tensor, nn.Backprop) {
	r.ids, r.lengths = r.ids[:0], r.lengths[:0]
	for _, d := range docs {
		if d.Len() > 0 {
			r.ids = append(r.ids, d.ids...)
			r.lengths = append(r.lengths, d.Len())
		}
	}
	return r.encoder.Forward(p, nn.WideIDs(r.ids, r.columns, r.lengths))
}

func check(p *nn.Pass) error {
	if p.Backend == nil {
		return errors.New("ner: the Pass has no Backend; set it to the one the model was built with")
	}
	return nil
}
