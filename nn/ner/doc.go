// Package ner recognises named entities as spaCy does: a document is read from left to right,
// and a move for each token begins, continues or ends an entity, or leaves the token outside
// of one.
//
// [Moves] is the transition system: which moves are possible in a state, what each costs
// given the gold entities (a dynamic oracle, Goldberg and Nivre, COLING 2012), and the loss
// that follows. It is pure.
package ner
