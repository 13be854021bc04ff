package ner

import "github.com/ringtrain/ringtrain/nn/text"

// A state says how far a document has been read, and what is open there.
type state struct {
	next  int // the token that the next move takes
	end   int // tokens of the document; the state is final when next reaches it
	begin int // first token of the open entity; -1 if none is open
	label int // of the open entity
}

// start returns the state before the first token of a document.
func start(tokens int) state { return state{end: tokens, begin: -1} }

func (s *state) final() bool { return s.next >= s.end }

func (s *state) open() bool { return s.begin >= 0 }

// apply makes a possible move. It returns the entity that the move ends, if any.
func (m *Moves) apply(s *state, move int) (e entity, ended bool) {
	action, label := m.split(move)
	switch action {
	case text.Begin:
		s.begin, s.label = s.next, label
	case text.Last:
		e, ended = entity{s.begin, s.next + 1, s.label}, true
		s.begin = -1
	case text.Unit:
		e, ended = entity{s.next, s.next + 1, label}, true
	}
	s.next++
	return e, ended
}

// An entity is the tokens from begin to end, excluding end.
type entity struct{ begin, end, label int }

// span returns an entity with its label.
func (m *Moves) span(e entity) text.Span {
	return text.Span{Start: e.begin, End: e.end, Label: m.labels[e.label]}
}
