package text

import "strings"

// Lexemes computes the ids of attributes of words. It remembers those of many words, because
// most words of a text are frequent ones. It belongs to one goroutine at a time.
type Lexemes struct {
	attrs []Attr
	limit int            // words to remember
	known map[string]int // where the ids of a word begin
	ids   []uint64
}

// Limits of what Lexemes remember.
const (
	knownWords = 1 << 17
	knownBytes = 32 // of a word
)

// NewLexemes returns Lexemes for some attributes.
func NewLexemes(attrs []Attr) *Lexemes {
	return &Lexemes{attrs: attrs, limit: knownWords, known: map[string]int{}}
}

// Append appends the [StringID] of each attribute of the first word, then those of the
// second, and so on.
func (l *Lexemes) Append(ids []uint64, words []string) []uint64 {
	for _, word := range words {
		at, ok := l.known[word]
		switch {
		case ok:
			ids = append(ids, l.ids[at:at+len(l.attrs)]...)
		case len(word) > knownBytes:
			ids = l.compute(ids, word)
		default:
			ids = append(ids, l.learn(word)...)
		}
	}
	return ids
}

// learn computes and remembers the ids of a word. If there are too many words, it forgets all
// others: the frequent ones will soon be back.
func (l *Lexemes) learn(word string) []uint64 {
	if len(l.known) >= l.limit {
		clear(l.known)
		l.ids = l.ids[:0]
	}
	at := len(l.ids)
	l.known[strings.Clone(word)] = at // word may be a part of a large text
	l.ids = l.compute(l.ids, word)
	return l.ids[at:]
}

func (l *Lexemes) compute(ids []uint64, word string) []uint64 {
	for _, a := range l.attrs {
		ids = append(ids, StringID(a.Of(word)))
	}
	return ids
}
