package catalog

import (
	"strconv"
	"strings"
	"unicode"
)

// cell returns a text as a table shows it: in quotes if it would otherwise look like several
// fields or lines, or like a text in quotes.
func cell(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return r == '"' || unicode.IsSpace(r) }) {
		return strconv.Quote(text)
	}
	return text
}
