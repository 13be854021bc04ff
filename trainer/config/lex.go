package config

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// document is a text split into sections and raw values, before interpretation.
type document struct {
	name     string
	sections []*rawSection // in file order; after link, includes those implied by '*'
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

// rawKey is a line key = text with its continuation lines.
type rawKey struct {
	section *rawSection
	name    string
	text    string
	pos     Pos
	state   progress
	value   any
	cost    cost

	sections bool   // the value contains a section by reference
	word     string // the Python literal that the value was written as
}

// key returns the key with a name, or nil.
func (s *rawSection) key(name string) *rawKey { return s.index[name] }

// add appends a key.
func (s *rawSection) add(k *rawKey) {
	k.section = s
	s.keys = append(s.keys, k)
	s.index[k.name] = k
}

// lex splits a text into sections and keys by the rules of Python's configparser: '=' or
// ':' after the key, whichever comes first; whole-line comments with '#' or ';'; lines
// indented deeper than their key continue its value; no duplicates.
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
	lines   []string // of the value of key
	indent  int      // of the last key or header
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

// endKey completes the value being collected.
func (l *lexer) endKey() {
	if l.key != nil {
		l.key.text = strings.TrimRightFunc(strings.Join(l.lines, "\n"), unicode.IsSpace)
	}
	l.key, l.lines = nil, nil
}

// header reads [name]. Like configparser it ignores what follows the bracket, but it
// warns unless that is a comment.
func (l *lexer) header(pos Pos, content string) error {
	name, after, closed := strings.Cut(content[1:], "]")
	switch {
	case !closed:
		return fail(pos, "the section header %s is not closed; write [name] alone on a line", content)
	case strings.Contains(after, "]"): // configparser would take everything up to the last bracket as the name
		return fail(pos, "%s: the text after the section header contains a bracket; delete it", content)
	}
	if after = strings.TrimSpace(after); after != "" && after[0] != '#' && after[0] != ';' {
		l.doc.warnings = append(l.doc.warnings, fail(pos, "%s: the text after the section header is ignored; write it on a line of its own", content).Error())
	}
	for part := range strings.SplitSeq(name, ".") {
		if part == "" || strings.TrimSpace(part) != part || strings.Contains(part, "[") {
			return fail(pos, "[%s] is not a section name; write parts separated by single dots, as [model.layers]", name)
		}
	}
	if before := l.doc.byName[name]; before != nil {
		return fail(pos, "section [%s] is already defined at line %d; merge the two", name, before.pos.Line)
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
		return fail(pos, "key %q of section [%s] is already set at line %d; delete one of the two",
			name, l.section.name, l.section.key(name).pos.Line)
	}
	l.key = &rawKey{name: name, pos: pos}
	l.lines = []string{strings.TrimSpace(content[at+1:])}
	l.section.add(l.key)
	return nil
}
