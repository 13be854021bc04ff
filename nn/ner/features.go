package ner

import "fmt"

// Features are the tokens from whose vectors a state's moves are scored.
type Features uint8

// The features of spaCy's versions.
const (
	// ThreeTokens are the next token, the first token of the open entity, and the token
	// before the next if an entity is open: spaCy's default.
	ThreeTokens Features = iota
	// SixTokens are the next token and the first five of the open entity: extra_state_tokens
	// since spaCy 3.0.0.
	SixTokens
)

// Tokens returns the number of tokens.
func (f Features) Tokens() int {
	if f == ThreeTokens {
		return 3
	}
	return 6
}

// String names the features for errors.
func (f Features) String() string {
	switch f {
	case ThreeTokens:
		return "three tokens"
	case SixTokens:
		return "six tokens"
	}
	return fmt.Sprintf("Features(%d)", uint8(f))
}

// of sets ids to the tokens of a state that is not final; -1 stands for no token.
func (f Features) of(s *state, ids []int32) {
	for i := range ids {
		ids[i] = -1
	}
	next := s.next
	ids[0] = int32(next)
	switch f {
	case ThreeTokens:
		if s.open() {
			ids[1], ids[2] = int32(s.begin), int32(next-1)
		}
	case SixTokens:
		if s.open() {
			for i, token := 1, s.begin; i < len(ids) && token < next; i, token = i+1, token+1 {
				ids[i] = int32(token)
			}
		}
	}
}
