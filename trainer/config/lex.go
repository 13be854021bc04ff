package config

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// document is a text as sections and raw values, before anything is interpreted.
type document struct {
	name     string
	sections []*rawSection // in file order; after link also those implied by '*'
	byName   map[string]*rawSection
	warnings []string
}

// rawSection is a [section] with its keys in file order.
type rawSection struct {
	name     string // with dots
	pos      Pos
	keys     []*rawKey
	index    map[string]*rawKey
	children []*rawSection // set by link
	state    progress
	value    *Section
	cost     cost
}

// rawKey is a line key = text, with its continuation lines.
type rawKey struct {
	section *rawSection
	name    string
	text    string
	pos     Pos
	state   progress
	value   any
	cost    cost

	sections bool   // by reference, in the value
	word     string // Python's literal that the value was written as
}

// key returns the key of a name, nil when there is none.
func (s *rawSection) key(name string) *rawKey { return s.index[name] }

// add puts a key at the end.
func (s *rawSection) add(k *rawKey) {
	k.section = s
	s.keys = append(s.keys, k)
	s.index[k.name] = k
}

// lex splits a text into sections and keys by the rules of Python's
// configparser: '=' or ':' after the key, whichever comes first; whole-line
// comments with '#' or ';'; lines indented deeper than their key continue
// its value; nothing twice.
func lex(name, text string) (*document, error) {
	l := lexer{doc: &document{name: name, byName: make(map[string]*rawSection)}}
	for i, line := range strings.Split(text, "\n") {
		if err := l.line(Pos{name, i + 1}, line); err != nil {
			return nil, err
		}
	}
	l.endKey()
	return l.doc, nil
}

type lexer struct {
	doc     *document
	section *rawSection
	key     *rawKey
	lines   []string // of the key's value
	indent  int      // of the key or header before
}

func (l *lexer) line(pos Pos, line string) error {
	content := strings.TrimSpace(line)
	switch {
	case content == "":
		if l.key != nil {
			l.lines = append(l.lines, "")
		}
		return nil
	case content[0] == '#' || content[0] == ';':
		return nil
	}
	indent := utf8.RuneCountInString(line) - utf8.RuneCountInString(strings.TrimLeftFunc(line, unicode.IsSpace))
	if l.key != nil && indent > l.indent {
		l.lines = append(l.lines, content)
		return nil
	}
	l.endKey()
	l.indent = indent
	if content[0] == '[' {
		return l.header(pos, content)
	}
	return l.assignment(pos, content)
}

// endKey completes the value that was being collected.
func (l *lexer) endKey() {
	if l.key != nil {
		l.key.text = strings.TrimRightFunc(strings.Join(l.lines, "\n"), unicode.IsSpace)
	}
	l.key, l.lines = nil, nil
}

// header reads [name]. What follows the bracket is ignored, as configparser does,
// but only comments are ignored without a warning.
func (l *lexer) header(pos Pos, content string) error {
	name, after, closed := strings.Cut(content[1:], "]")
	switch {
	case !closed:
		return fail(pos, "the section header %s is not closed; write [name] alone on a line", content)
	case strings.Contains(after, "]"): // configparser would take all up to the last bracket as the name
		return fail(pos, "%s: the text behind the section header has a bracket; delete it", content)
	}
	if after = strings.TrimSpace(after); after != "" && after[0] != '#' && after[0] != ';' {
		l.doc.warnings = append(l.doc.warnings, fail(pos, "%s: the text behind the section header is ignored; write it on a line of its own", content).Error())
	}
	for _, part := range strings.Split(name, ".") {
		if part == "" || strings.TrimSpace(part) != part || strings.Contains(part, "[") {
			return fail(pos, "[%s] is not a section name; write parts separated by single dots, as [model.layers]", name)
		}
	}
	if before := l.doc.byName[name]; before != nil {
		return fail(pos, "section [%s] is there already, at line %d; put its keys together", name, before.pos.Line)
	}
	l.section = l.doc.add(name, pos)
	return nil
}

func (d *document) add(name string, pos Pos) *rawSection {
	s := &rawSection{name: name, pos: pos, index: make(map[string]*rawKey)}
	d.sections = append(d.sections, s)
	d.byName[name] = s
	return s
}

func (l *lexer) assignment(pos Pos, content string) error {
	at := strings.IndexAny(content, "=:")
	if at < 0 {
		return fail(pos, "%q is neither a [section] nor key = value; make sure that sections and values are formatted correctly", content)
	}
	name := strings.TrimRightFunc(content[:at], unicode.IsSpace)
	switch {
	case name == "":
		return fail(pos, "a value without a key; write key = value")
	case l.section == nil || l.section.name == "DEFAULT":
		return fail(pos, "key %q is not part of a section; values need a [section] above them", name)
	case l.section.key(name) != nil:
		return fail(pos, "key %q of section [%s] is there already, at line %d; delete one of the two",
			name, l.section.name, l.section.key(name).pos.Line)
	}
	l.key = &rawKey{name: name, pos: pos}
	l.lines = []string{strings.TrimSpace(content[at+1:])}
	l.section.add(l.key)
	return nil
}
