package ner

import (
	"errors"

	"github.com/ringtrain/ringtrain/nn"
)

// A reader reads documents: it scores the moves of a state, makes the best of those that are
// possible, and continues with the next state. Everything but the states has been computed for
// the whole batch.
type reader interface {
	// learn reads parts, and sets sums to the loss and to the sum of the squared gradients of
	// scores. It returns the units, after dropout, and these gradients. Each has a row for each
	// state.
	learn(p *nn.Pass, products nn.Buffer, parts []part, sums nn.Buffer) (units, dscores nn.Buffer)
	// spread returns the gradients of the products, and adds those of the pad and the bias of
	// the lower layer. dunits are the gradients of the units of the last learn, before dropout.
	spread(p *nn.Pass, dunits nn.Buffer) (dproducts nn.Buffer)
	// find reads parts without dropout, and returns the loss of each. It calls found for each
	// entity.
	find(b nn.Backend, products nn.Buffer, parts []part, found func(part, entity)) []float64
}

// A part is a chunk of a document of a batch.
type part struct {
	chunk
	*document
	row   int // of the document in the batch
	first int // the document's first token, as a row of all tokens of the batch
}

// states returns the number of states of parts, one for each token.
func states(parts []part) (n int) {
	for _, p := range parts {
		n += p.stop - p.next
	}
	return n
}

// newReader returns a reader whose states are where the backend computes.
func newReader(b nn.Backend, n *network, m *Moves) (reader, error) {
	if t, ok := b.(nn.Transitioner); ok {
		return &deviceReader{network: n, moves: m, transitioner: t}, nil
	}
	if n.b.Values.Float32s() == nil {
		return nil, errors.New("ner: the backend has memory of its own, so it must implement nn.Transitioner; train on the CPU")
	}
	return newHostReader(n, m), nil
}
