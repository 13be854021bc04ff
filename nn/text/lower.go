package text

import (
	"strings"
	"unicode"
)

// lower returns s in lower case, as Python's str.lower. It differs from strings.ToLower in
// İ, which becomes two characters, and in Σ, which becomes ς at the end of a word.
func lower(s string) string {
	if !strings.ContainsAny(s, "İΣ") {
		return strings.ToLower(s)
	}
	runes := []rune(s)
	var b strings.Builder
	for i, r := range runes {
		switch {
		case r == 'İ':
			b.WriteString("i\u0307")
		case r == 'Σ' && endsWord(runes, i):
			b.WriteRune('ς')
		default:
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// endsWord reports whether the letter at i is the last of a word, but not the only one: the
// condition Final_Sigma of the Unicode Standard, section 3.13.
func endsWord(runes []rune, i int) bool {
	before, after := i-1, i+1
	for before >= 0 && ignorable(runes[before]) {
		before--
	}
	for after < len(runes) && ignorable(runes[after]) {
		after++
	}
	return before >= 0 && cased(runes[before]) && (after == len(runes) || !cased(runes[after]))
}

// ignorable is Unicode's property Case_Ignorable.
func ignorable(r rune) bool {
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) || strings.ContainsRune("'.:·\u0387՟״‘’․‧︓﹒﹕＇．：", r)
}

// cased is Unicode's property Cased.
func cased(r rune) bool {
	return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt, unicode.Other_Uppercase, unicode.Other_Lowercase)
}
