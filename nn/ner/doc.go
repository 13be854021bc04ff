// Package ner recognises named entities as spaCy does: a network reads a document from left
// to right, and chooses for each token a move that begins, continues or ends an entity, or
// leaves the token outside of one.
//
// [Moves] is the transition system: which moves are possible in a state, what each costs
// given the gold entities (a dynamic oracle, Goldberg and Nivre, COLING 2012), and the loss
// that follows. It is pure. A [Recognizer] is the model: an [Encoder] makes a vector of each
// token, and a small network scores the moves of a state from the vectors of a few tokens.
// In training it follows its own predictions, and learns from the cost of every move. States
// are in host memory, or in that of a backend which is an nn.Transitioner.
package ner
