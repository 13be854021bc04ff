package text

import (
	"errors"
	"io"
	"iter"
	"strings"
)

// docStart is the first column of the line that begins a document of a CoNLL file.
const docStart = "-DOCSTART-"

// mostColumns is the largest number of bytes of a line of a CoNLL file.
const mostColumns = 1 << 16

// ReadCoNLL reads documents in the format of CoNLL-2003, uncompressed: a line for each word,
// which is the first of at least two columns; the tag, of any Scheme, is the last. White
// space separates columns. An empty line ends a sentence. If the first line that is not
// empty begins with -DOCSTART-, such lines begin documents; otherwise Options.Sentences
// make one. Reading ends with the first error.
func ReadCoNLL(r io.Reader, o Options) iter.Seq2[*Doc, error] {
	return func(yield func(*Doc, error) bool) {
		l := newLines(r, o.Name, mostColumns)
		g := grouping{each: o.sentences(), yield: yield}
		first := true
		for {
			line, err := l.next()
			columns := strings.Fields(line)
			switch {
			case errors.Is(err, io.EOF):
				_ = g.sentence() && g.document()
				return
			case err != nil:
				yield(nil, err)
				return
			case len(columns) == 0:
				if !g.sentence() {
					return
				}
				continue
			case columns[0] == docStart:
				if first {
					g.each = 0
				}
				if !g.sentence() || !g.document() {
					return
				}
			default:
				if err := g.word(l, columns); err != nil {
					yield(nil, err)
					return
				}
			}
			first = false
		}
	}
}

// A grouping makes documents of sentences.
type grouping struct {
	each      int // sentences of a document; 0: document says where they end
	yield     func(*Doc, error) bool
	words     []string
	tags      []Tag
	began     int // the index of the first word of the current sentence
	sentences int
}

// word adds the word of a line with these columns.
func (g *grouping) word(l *lines, columns []string) error {
	if len(columns) < 2 {
		return l.errorf("the line has only one column, %.40q; it needs a word and a tag", columns[0])
	}
	tag, err := ParseTag(columns[len(columns)-1])
	if err != nil {
		return l.errorf("%w", err)
	}
	tag.Label = l.intern(tag.Label)
	g.words, g.tags = append(g.words, l.intern(columns[0])), append(g.tags, tag)
	return nil
}

// sentence ends a sentence, and reports whether to continue.
func (g *grouping) sentence() bool {
	if len(g.words) == g.began {
		return true
	}
	switch first := &g.tags[g.began]; first.Action { // no entity begins in an earlier sentence
	case In:
		first.Action = Begin
	case Last:
		first.Action = Unit
	}
	g.began = len(g.words)
	if g.sentences++; g.sentences == g.each {
		return g.document()
	}
	return true
}

// document ends a document, and reports whether to continue.
func (g *grouping) document() bool {
	if len(g.words) == 0 {
		return true
	}
	d := &Doc{Words: g.words}
	d.SetTags(g.tags)
	g.words, g.tags, g.began, g.sentences = nil, g.tags[:0], 0, 0
	return g.yield(d, nil)
}
