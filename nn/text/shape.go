package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of spaCy's word_shape.
const (
	longWord = 100 // characters from which on the shape is "LONG"
	longRun  = 4   // equal characters of a shape in a row; more are left out
)

// shape returns word with x for lower-case letters, X for upper-case ones and d for digits.
func shape(word string) string {
	if utf8.RuneCountInString(word) >= longWord {
		return "LONG"
	}
	var b strings.Builder
	last, run := rune(-1), 0
	for _, r := range word {
		switch {
		case unicode.IsUpper(r):
			r = 'X'
		case unicode.IsLetter(r):
			r = 'x'
		case isDigit(r):
			r = 'd'
		}
		if r != last {
			last, run = r, 0
		}
		if run++; run <= longRun {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isDigit is Python's str.isdigit: also superscripts, subscripts and enclosed digits.
func isDigit(r rune) bool { return unicode.In(r, unicode.Nd, otherDigits) }

// otherDigits are the characters with Numeric_Type=Digit in the Unicode Character Database.
var otherDigits = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00b2, Hi: 0x00b3, Stride: 1},
		{Lo: 0x00b9, Hi: 0x00b9, Stride: 1},
		{Lo: 0x1369, Hi: 0x1371, Stride: 1},
		{Lo: 0x19da, Hi: 0x19da, Stride: 1},
		{Lo: 0x2070, Hi: 0x2070, Stride: 1},
		{Lo: 0x2074, Hi: 0x2079, Stride: 1},
		{Lo: 0x2080, Hi: 0x2089, Stride: 1},
		{Lo: 0x2460, Hi: 0x2468, Stride: 1},
		{Lo: 0x2474, Hi: 0x247c, Stride: 1},
		{Lo: 0x2488, Hi: 0x2490, Stride: 1},
		{Lo: 0x24ea, Hi: 0x24ea, Stride: 1},
		{Lo: 0x24f5, Hi: 0x24fd, Stride: 1},
		{Lo: 0x24ff, Hi: 0x24ff, Stride: 1},
		{Lo: 0x2776, Hi: 0x277e, Stride: 1},
		{Lo: 0x2780, Hi: 0x2788, Stride: 1},
		{Lo: 0x278a, Hi: 0x2792, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x10a40, Hi: 0x10a43, Stride: 1},
		{Lo: 0x10e60, Hi: 0x10e68, Stride: 1},
		{Lo: 0x11052, Hi: 0x1105a, Stride: 1},
		{Lo: 0x1f100, Hi: 0x1f10a, Stride: 1},
	},
	LatinOffset: 2,
}
