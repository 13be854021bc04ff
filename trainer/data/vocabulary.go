package data

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxVocabulary is the largest number of different characters in a text.
const MaxVocabulary = 1 << 16

// Unknown is the id of all characters outside a vocabulary.
const Unknown = 0

// A Vocabulary numbers characters in code point order, from 1. A character is a Unicode
// code point.
type Vocabulary struct {
	chars []rune // ascending
	ids   map[rune]int32
}

// NewVocabulary returns the vocabulary of some different characters, in any order.
func NewVocabulary(chars []rune) (*Vocabulary, error) {
	if n := len(chars); n < 1 || n > MaxVocabulary {
		return nil, fmt.Errorf("data: a vocabulary has 1 to %d different characters, not %d", MaxVocabulary, n)
	}
	v := &Vocabulary{chars: slices.Sorted(slices.Values(chars)), ids: make(map[rune]int32, len(chars))}
	for i, c := range v.chars {
		if !utf8.ValidRune(c) {
			return nil, fmt.Errorf("data: %#x is not a Unicode character", c)
		}
		v.ids[c] = int32(i + 1)
	}
	if len(v.ids) != len(chars) {
		return nil, fmt.Errorf("data: %d of %d characters of a vocabulary occur twice", len(chars)-len(v.ids), len(chars))
	}
	return v, nil
}

// Len returns the number of ids: one more than that of characters, for Unknown.
func (v *Vocabulary) Len() int { return len(v.chars) + 1 }

// ID returns the id of a character, or Unknown.
func (v *Vocabulary) ID(c rune) int32 { return v.ids[c] }

// Char returns the character of an id from 1 to Len()-1.
func (v *Vocabulary) Char(id int32) rune { return v.chars[id-1] }

// String returns the code points in hexadecimal, with a dash between the first and last of
// a range: "a,20-7e".
func (v *Vocabulary) String() string {
	var b strings.Builder
	for lo := 0; lo < len(v.chars); {
		hi := lo + 1
		for hi < len(v.chars) && v.chars[hi] == v.chars[hi-1]+1 {
			hi++
		}
		if lo > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%x", v.chars[lo])
		if hi > lo+1 {
			fmt.Fprintf(&b, "-%x", v.chars[hi-1])
		}
		lo = hi
	}
	return b.String()
}

// ParseVocabulary is the inverse of String.
func ParseVocabulary(text string) (*Vocabulary, error) {
	var chars []rune
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(part, "-")
		lo, err := strconv.ParseUint(from, 16, 21)
		hi := lo
		if ranged && err == nil {
			hi, err = strconv.ParseUint(to, 16, 21)
		}
		if err != nil || hi < lo || hi-lo >= MaxVocabulary {
			return nil, fmt.Errorf("data: %.20q is not a range of characters", part)
		}
		for c := lo; c <= hi; c++ {
			chars = append(chars, rune(c))
		}
		if len(chars) > MaxVocabulary {
			break
		}
	}
	return NewVocabulary(chars)
}
