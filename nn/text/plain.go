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
	return func(yield func(*Doc, error) bool) {
		l := newLines(r, o.Name, mostLine)
		for {
			line, err := l.next()
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(nil, err)
				return
			}
			if strings.TrimSpace(line) != "" && !yield(Tokenize(line), nil) {
				return
			}
		}
	}
}
