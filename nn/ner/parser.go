package ner

import (
	"errors"
	"fmt"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/text"
)

// A Parser is what a Recognizer is made from. Encoder belongs to one Recognizer.
type Parser struct {
	Settings
	// Encoder makes a vector of each token of several documents. A row of its input is a
	// token: the ids of Attrs, as nn.WideIDs has them.
	Encoder nn.Layer
	Attrs   []text.Attr
	Moves   *Moves
}

// Declare declares the parameters, those of the Encoder first. The initial weights depend on
// seed and the parameter names.
func (p Parser) Declare(seed uint64) (*nn.Builder, error) {
	b, _, err := p.declare(seed)
	return b, err
}

func (p Parser) declare(seed uint64) (*nn.Builder, *network, error) {
	if p.Encoder == nil || p.Moves == nil || len(p.Attrs) == 0 {
		return nil, nil, errors.New("ner: a Parser needs an Encoder, its Attrs and Moves")
	}
	b := nn.NewBuilder(seed)
	b.TakesDocuments()
	out, err := p.Encoder.Init([]int{len(p.Attrs), 2}, nil, b.Scope("tok2vec"))
	if err != nil {
		return nil, nil, err
	}
	if len(out) != 1 {
		return nil, nil, fmt.Errorf("ner: the encoder makes rows of shape %v, but a token needs one vector", out)
	}
	n := &network{Settings: p.Settings}
	return b, n, n.init(out[0], p.Moves.Len(), b.Scope("ner"))
}

// A Document is a text.Doc with the ids and tags that the Recognizers of a Parser need.
type Document struct {
	*text.Doc
	document
	ids []uint64 // of each attribute of each word
}

// Documents prepares documents for the Recognizers of p.
func (p Parser) Documents(docs []*text.Doc) []*Document {
	lexemes := text.NewLexemes(p.Attrs)
	out := make([]*Document, len(docs))
	for i, d := range docs {
		out[i] = &Document{Doc: d, document: p.Moves.document(d), ids: lexemes.Append(nil, d.Words)}
	}
	return out
}

// A Batch is documents of a Parser.
type Batch struct{ Docs []*Document }

// Rows returns the number of documents.
func (b Batch) Rows() int { return len(b.Docs) }
