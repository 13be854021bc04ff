package text

import (
	"errors"
	"io"
	"iter"
	"strings"
)

// ReadPlain reads raw text, uncompressed, as documents without annotation: one for each
// line that has words, divided by Tokenize. Reading ends with the first error.
func ReadPlain(r io.Reader, o Options) iter.Seq2[*Doc, error] {
	return documents(r, o, func(_ *lines, line string) (*Doc, error) { return Tokenize(line), nil })
}

// documents returns the documents of lines, up to the first error. of returns nil for a line
// to leave out. Lines without words are left out anyway.
func documents(r io.Reader, o Options, of func(l *lines, line string) (*Doc, error)) iter.Seq2[*Doc, error] {
	return func(yield func(*Doc, error) bool) {
		l := newLines(r, o.Name, mostLine)
		for {
			line, err := l.next()
			if errors.Is(err, io.EOF) {
				return
			}
			var d *Doc
			if err == nil && strings.TrimSpace(line) != "" {
				d, err = of(l, line)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if d != nil && !yield(d, nil) {
				return
			}
		}
	}
}
