package nn

// A Transitioner is a Backend that makes the moves of a transition-based parser by itself: it
// scores a state, makes the best possible move, and continues with the next state. Package
// nn/ner does this in host memory. Its comments say what states, moves, costs and the loss are,
// and its tests compare both.
type Transitioner interface {
	// Transitions makes all moves of all parts of t, and writes what t says.
	Transitions(t TransitionBatch)
	// TransitionsGrad takes the gradients of t.Units, before dropout, and what Transitions
	// wrote for the same t. It sets dproducts to the gradient of t.Products, and adds those of
	// t.Pad and t.Bias to dpad and dbias. Sums are in the order of rows, except that dpad and
	// dbias may be sums over documents first.
	TransitionsGrad(dproducts, dpad, dbias, dunits Buffer, t TransitionBatch)
}

// TransitionShape is the shape of a parser.
type TransitionShape struct {
	Features int // the number of the ner.Features
	Tokens   int // features of a state
	Width    int // units
	Pieces   int // of each unit, at most 4; a single one is a Relu
	Labels   int // of entities
}

// Scores returns the number of scores of a state, one for each move: four for each label, and two
// without one.
func (s TransitionShape) Scores() int { return 4*s.Labels + 2 }

// Wide returns the number of pieces of all units.
func (s TransitionShape) Wide() int { return s.Width * s.Pieces }

// A TransitionBatch is what the states of documents are computed from, and where the results
// go. A row is a state. Parts, Documents, Tags, Features and Largest are int32.
type TransitionBatch struct {
	TransitionShape
	Parts     Buffer // TransitionParts, one after the other
	Documents Buffer // the first row of each document that has parts, and the number of rows
	Tags      Buffer // of each token, as TransitionTag makes them

	Products  Buffer // of a token and the matrix of each feature: (tokens, Tokens, Width, Pieces)
	Pad       Buffer // instead of the products of a token that is missing: (Tokens, Width, Pieces)
	Bias      Buffer // (Width, Pieces)
	Upper     Buffer // weights of the units in scores: (Scores, Width); empty if units are scores
	UpperBias Buffer // (Scores)

	Rate   float32 // of dropout of units; 0 for none
	Layer  uint32  // its number in Random
	Random Stream  // its row is that of the document, its block that of the token times blocks per row

	// Rows of these are written in training: the features as tokens of the batch, or -1 for a
	// token that is missing, (rows, Tokens); and the piece that is each unit, or -1 if it passes
	// no gradient, (rows, Width). Both are empty if no gradients are needed.
	FeatureTokens, Largest Buffer

	Units   Buffer // after dropout: (rows, Width)
	DScores Buffer // gradients of scores: (rows, Scores); undefined if FeatureTokens is empty
	Moves   Buffer // the number of each move: (rows)
	Totals  Buffer // the loss of each part, and the sum of the squares of DScores: (parts, 2)
}

// A TransitionPart is a part of a document: consecutive tokens, with a state each.
type TransitionPart struct {
	Document int // row of the document in the batch
	First    int // the document's first token in the batch; all other tokens count from it
	End      int // tokens of the document
	Stop     int // token before which the part ends
	Row      int // of the part's first state

	// The first state: the next token, the first token of the open entity or -1, and its label.
	Next, Begin, Label int
}

// TransitionPartLen is the number of elements of a TransitionPart.
const TransitionPartLen = 8

// Append appends the elements of p.
func (p TransitionPart) Append(to []int32) []int32 {
	for _, n := range [TransitionPartLen]int{p.Document, p.First, p.End, p.Stop, p.Row, p.Next, p.Begin, p.Label} {
		to = append(to, int32(n))
	}
	return to
}

// TransitionTag returns a tag as an element of Tags. action is the number of a text.Action, and
// label that of a label, or -1. An entity cannot begin at a blank token.
func TransitionTag(action, label int, blank bool) int32 {
	tag := int32(label)<<4 | int32(action)
	if blank {
		tag |= 1 << 3
	}
	return tag
}
