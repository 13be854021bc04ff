package ner

import (
	"errors"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/text"
)

// A Recognizer is the model: an nn.Model of documents. Its loss is summed over the states of
// a batch, one for each token that is learned from, and the weight is their number. Batches have
// different numbers of tokens, and the host divides them into parts, so steps cannot be recorded.
type Recognizer struct {
	moves   *Moves
	columns int // ids of a token
	encoder nn.Layer
	network *network
	params  *nn.Params
	backend nn.Backend
	sums    nn.Buffer // the loss, and the sum of the squared gradients of scores
	vectors nn.Buffer // the sum of the squared gradients of token vectors

	reader  reader
	ids     []uint64
	lengths []int
	parts   []part
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
	reader, err := newReader(b, n, p.Moves)
	if err != nil {
		return nil, err
	}
	return &Recognizer{
		moves: p.Moves, columns: len(p.Attrs), encoder: p.Encoder, network: n, params: params, backend: b, sums: b.Alloc(2), vectors: b.Alloc(1), reader: reader,
	}, nil
}

// Params implements nn.Model.
func (r *Recognizer) Params() *nn.Params { return r.params }

// Squares are sums of squared gradients, which spaCy calls losses.
type Squares struct {
	Vectors float64 // of the encoder's token vectors: LOSS TOK2VEC
	Scores  float64 // of the scores of moves: LOSS NER
}

// Squares returns the sums of the last Learn. It waits for the backend.
func (r *Recognizer) Squares() Squares {
	var sums [2]float32
	var vectors [1]float32
	r.backend.Read(sums[:], r.sums)
	r.backend.Read(vectors[:], r.vectors)
	return Squares{Vectors: float64(vectors[0]), Scores: float64(sums[1])}
}

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
	if rows == 0 {
		be.Zero(r.sums)
		be.Zero(r.vectors)
	} else {
		vectors, back := r.encode(p, b.Docs)
		x, backLinear := r.network.linear.Forward(p, vectors)
		units, dscores := r.reader.learn(p, r.network.multiply(be, x), r.parts, r.sums)
		dvectors := backLinear(r.network.backward(p, x, units, dscores, r.reader))
		be.Gemm(r.vectors, dvectors.Data, dvectors.Data, 1, 1, dvectors.Data.Len(), false, true, 0)
		back(dvectors)
	}
	if p.Final != nil {
		p.Final(0)
	}
	return r.sums.Slice(0, 1), rows, nil
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
	products := r.network.multiply(quiet.Backend, x)
	for i, loss := range r.reader.find(quiet.Backend, products, r.parts, func(p part, e entity) { found[p.row] = append(found[p.row], r.moves.span(e)) }) {
		losses[r.parts[i].row] = loss
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
func (r *Recognizer) split(docs []*Document, chop func([]chunk, *document) []chunk) int {
	r.parts = r.parts[:0]
	first := 0
	var chunks []chunk
	for row, d := range docs {
		chunks = chop(chunks[:0], &d.document)
		for _, c := range chunks {
			r.parts = append(r.parts, part{chunk: c, document: &d.document, row: row, first: first})
		}
		first += d.Len()
	}
	return states(r.parts)
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
