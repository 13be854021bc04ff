package text

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// An Attr is a string that is made of a word, under spaCy's name and with spaCy's rules.
// Models learn from the ids of such strings; see [Lexemes].
type Attr uint8

// The attributes. Characters are code points.
const (
	Orth   Attr = iota // the word itself
	Lower              // the word in lower case
	Norm               // the word in lower case, with one form for all quotes, dashes and currencies
	Prefix             // its first character
	Suffix             // its last three characters
	Shape              // its pattern: "Xxxxx" for "Apple"
)

var attrNames = []string{"ORTH", "LOWER", "NORM", "PREFIX", "SUFFIX", "SHAPE"}

// ParseAttr returns the attribute with spaCy's name for it, such as "NORM".
func ParseAttr(name string) (Attr, error) {
	i := slices.Index(attrNames, name)
	if i < 0 {
		return 0, fmt.Errorf("text: an attribute must be one of %s, not %q", strings.Join(attrNames, ", "), name)
	}
	return Attr(i), nil
}

// String returns spaCy's name of the attribute.
func (a Attr) String() string {
	if int(a) < len(attrNames) {
		return attrNames[a]
	}
	return fmt.Sprintf("Attr(%d)", uint8(a))
}

// Of returns the attribute of a word. Norm has no exceptions for a language.
func (a Attr) Of(word string) string {
	switch a {
	case Lower:
		return lower(word)
	case Norm:
		if norm, ok := norms[word]; ok {
			return norm
		}
		return lower(word)
	case Prefix:
		_, size := utf8.DecodeRuneInString(word)
		return word[:size]
	case Suffix:
		end := len(word)
		for range 3 {
			_, size := utf8.DecodeLastRuneInString(word[:end])
			end -= size
		}
		return word[end:]
	case Shape:
		return shape(word)
	}
	return word
}

// norms are the words whose Norm is not the word in lower case: spaCy's BASE_NORMS.
var norms = map[string]string{
	"'s": "'s", "'S": "'s", "’s": "'s", "’S": "'s", "’": "'", "‘": "'", "´": "'", "`": "'",
	"”": `"`, "“": `"`, "''": `"`, "``": `"`, "´´": `"`, "„": `"`, "»": `"`, "«": `"`, "‘‘": `"`, "’’": `"`,
	"？": "?", "！": "!", "，": ",", "；": ";", "：": ":", "。": ".", "।": ".", "…": "...",
	"—": "-", "–": "-", "--": "-", "---": "-", "——": "-",
	"€": "$", "£": "$", "¥": "$", "฿": "$", "US$": "$", "C$": "$", "A$": "$", "₺": "$", "₹": "$", "৳": "$", "₩": "$",
	"Mex$": "$", "₣": "$", "E£": "$",
}
