package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Tokenize divides a text into words. Text of the result is the text again.
//
// The rules are simple, and not those of spaCy: a word is letters and digits, and may have
// one of '’-.,&@_ between two of them, as in "don't", "3.14" and "AT&T". Every other
// punctuation mark or symbol is a word of its own. The first space after a word belongs to
// Spaces; other white space is a word of its own.
func Tokenize(text string) *Doc {
	d := &Doc{}
	for rest := text; rest != ""; {
		n := wordLen(rest)
		word := rest[:n]
		rest = rest[n:]
		spaced := len(rest) > 0 && rest[0] == ' '
		if spaced {
			rest = rest[1:]
		}
		d.Words, d.Spaces = append(d.Words, word), append(d.Spaces, spaced)
	}
	return d
}

// joiners are the punctuation marks that may be inside a word.
const joiners = "'’-.,&@_"

// wordLen returns the number of bytes of the first word of a text.
func wordLen(text string) int {
	first, n := utf8.DecodeRuneInString(text)
	switch {
	case unicode.IsSpace(first):
		return spaceLen(text)
	case !lettered(first):
		return n
	}
	for n < len(text) {
		c, size := utf8.DecodeRuneInString(text[n:])
		next, _ := utf8.DecodeRuneInString(text[n+size:])
		if !lettered(c) && !(strings.ContainsRune(joiners, c) && lettered(next)) {
			break
		}
		n += size
	}
	return n
}

// spaceLen returns the number of bytes of the white space with which a text begins.
func spaceLen(text string) int {
	return len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
}

// lettered reports whether c can begin and end a word of several characters.
func lettered(c rune) bool {
	return unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c)
}
