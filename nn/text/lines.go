package text

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// lines reads the lines of a corpus.
type lines struct {
	in     *bufio.Reader
	name   string
	number int // of the last line, from 1
	most   int // bytes of a line
	buffer []byte
	known  map[string]string // words that have been read
}

// newLines returns the lines of r, which have at most the given number of bytes.
func newLines(r io.Reader, name string, most int) *lines {
	return &lines{in: bufio.NewReaderSize(r, 1<<16), name: name, most: most, known: map[string]string{}}
}

// next returns the next line without its end, or io.EOF after the last.
func (l *lines) next() (string, error) {
	l.buffer = l.buffer[:0]
	l.number++
	for {
		part, err := l.in.ReadSlice('\n')
		l.buffer = append(l.buffer, part...)
		switch {
		case len(l.buffer) > l.most:
			return "", l.errorf("the line has more than %d bytes; is the file in another format?", l.most)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(l.buffer) == 0:
			return "", io.EOF
		case err != nil && !errors.Is(err, io.EOF):
			return "", l.errorf("reading the file: %w", err)
		}
		break
	}
	if !utf8.Valid(l.buffer) {
		return "", l.errorf("the line is not UTF-8; convert the file, for example with iconv")
	}
	line := string(l.buffer)
	if l.number == 1 {
		line = strings.TrimPrefix(line, "\ufeff")
	}
	return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), nil
}

// errorf returns an error about the last line.
func (l *lines) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", l.name, l.number, fmt.Errorf(format, args...))
}

// mostKnown bounds the memory of known.
const mostKnown = 1 << 20

// intern returns a copy of word that repetitions of it share, so that a document keeps
// neither its line nor many copies of frequent words.
func (l *lines) intern(word string) string {
	if same, ok := l.known[word]; ok {
		return same
	}
	word = strings.Clone(word)
	if len(l.known) < mostKnown {
		l.known[word] = word
	}
	return word
}
