package text

import (
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
)

// mostLine is the largest number of bytes of a line that is a sentence or a document.
const mostLine = 1 << 24

// ReadIOB reads documents in the format of WikiNER, uncompressed: each line is a sentence
// of word|POS|TAG or word|TAG, separated by spaces. The first word of a line decides which.
// Tags may be of any Scheme. Options.Sentences lines make a document. Reading ends with the
// first error.
func ReadIOB(r io.Reader, o Options) iter.Seq2[*Doc, error] {
	return func(yield func(*Doc, error) bool) {
		l := newLines(r, o.Name, mostLine)
		g := grouping{each: o.sentences(), yield: yield}
		for {
			line, err := l.next()
			if errors.Is(err, io.EOF) {
				_ = g.document()
				return
			}
			if err == nil {
				err = g.line(l, strings.Fields(line))
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !g.sentence() {
				return
			}
		}
	}
}

// line adds the words of a line.
func (g *grouping) line(l *lines, words []string) error {
	if len(words) == 0 {
		return nil
	}
	columns := max(2, min(strings.Count(words[0], "|")+1, 3))
	for _, w := range words {
		parts := columnsOf(w, columns)
		if len(parts) < columns || parts[0] == "" {
			return l.errorf("%.40q must be word|tag or word|part of speech|tag, like the first word of the line; a file with a line per word is CoNLL", w)
		}
		if err := g.word(l, parts); err != nil {
			return err
		}
	}
	return nil
}

// columnsOf divides text at its last bars into n columns, or as many as it has. The first
// may have bars.
func columnsOf(text string, n int) []string {
	columns := make([]string, 0, 3)
	for rest := text; len(columns) < n; {
		at := strings.LastIndexByte(rest, '|')
		if len(columns) == n-1 {
			at = -1
		}
		columns = append(columns, rest[at+1:])
		if at < 0 {
			break
		}
		rest = rest[:at]
	}
	slices.Reverse(columns)
	return columns
}
