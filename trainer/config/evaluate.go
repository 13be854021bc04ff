package config

import (
	"errors"
	"slices"
	"strings"
)

// Limits on references, so that a few lines cannot ask for unbounded memory.
const (
	maxDepth  = 10       // references from one value to the next
	maxSize   = 4 << 20  // of a value after substitution, in bytes or so
	maxCopied = 16 << 20 // of all that references bring in
)

// progress says how far the evaluation of a key or section has come.
type progress uint8

const (
	untouched progress = iota
	inProgress
	done
)

// cost is what a value takes: how many references follow one another in it, and
// how long it would be if written out.
type cost struct{ depth, size int }

// add includes a part of the value.
func (c *cost) add(part cost) {
	c.depth = max(c.depth, part.depth)
	c.size = min(c.size+part.size, maxSize+1) // no overflow
}

// evaluator turns raw values into the tree. Each key is evaluated once, and when
// something refers to it at the latest.
type evaluator struct {
	doc    *document
	trail  []string // the values being evaluated, each by a reference in the one before
	copied int      // bytes that references have brought in
}

// tree evaluates everything.
func (e *evaluator) tree() (*Section, error) {
	root := &Section{pos: Pos{Source: e.doc.name}}
	for _, raw := range e.doc.sections {
		if depth(raw.name) > 1 {
			continue
		}
		s, err := e.section(raw)
		if err != nil {
			return nil, err
		}
		root.entries = append(root.entries, Entry{Key: raw.name, Value: s, Pos: raw.pos})
	}
	return root, nil
}

// section evaluates a section and all below it.
func (e *evaluator) section(raw *rawSection) (*Section, error) {
	switch raw.state {
	case done:
		return raw.value, nil
	case inProgress:
		return nil, errCycle
	}
	raw.state = inProgress
	s := &Section{path: raw.name, pos: raw.pos}
	raw.cost.size = len(raw.name)
	for _, k := range raw.keys {
		v, err := e.key(k)
		if err != nil {
			return nil, err
		}
		s.entries = append(s.entries, Entry{Key: k.name, Value: v, Pos: k.pos})
		raw.cost.add(k.cost)
	}
	for _, child := range raw.children {
		v, err := e.section(child)
		if err != nil {
			return nil, err
		}
		_, own, _ := cutLast(child.name)
		s.entries = append(s.entries, Entry{Key: own, Value: v, Pos: child.pos})
		raw.cost.add(child.cost)
	}
	raw.state, raw.value = done, s
	return s, nil
}

// errCycle is returned to the reference that closes a circle.
var errCycle = errors.New("refers back to itself")

// key evaluates the value of a key.
func (e *evaluator) key(k *rawKey) (any, error) {
	switch k.state {
	case done:
		return k.value, nil
	case inProgress:
		return nil, errCycle
	}
	k.state = inProgress
	k.cost.size = len(k.name) + len(k.text)
	v, err := e.text(k)
	if err != nil {
		return nil, err
	}
	if k.cost.depth > maxDepth {
		return nil, fail(k.pos, "the references behind %s.%s follow one another more than %d times", k.section.name, k.name, maxDepth)
	}
	if len(k.text) > 1 && k.text[0] == '\'' && strings.HasSuffix(k.text, "'") {
		e.warn(k, "%s is in single quotes, which become part of the value; JSON strings have double quotes", k.text)
	}
	k.state, k.value = done, v
	return v, nil
}

// text interprets the raw value of a key: references first, then JSON, else a
// string.
func (e *evaluator) text(k *rawKey) (any, error) {
	parts, err := split(k.text)
	if err != nil {
		return nil, fail(k.pos, "%s = %s: %v", k.name, k.text, err)
	}
	if len(parts) == 1 && parts[0].ref {
		to, err := e.refer(k, parts[0].text)
		k.word = to.word
		if s, ok := to.value.(*Section); ok {
			return s.asValue(), err
		}
		return to.value, err
	}
	asJSON, asText, err := e.substitute(k, parts)
	if err != nil {
		return nil, err
	}
	if asJSON == "" {
		asJSON = asText
	}
	v, err := parseJSON(asJSON, k.section.name+"."+k.name, k.pos)
	switch {
	case err == errNotJSON:
		return e.string(k, parts, asText), nil
	case err != nil:
		return nil, fail(k.pos, "%s: %v", k.name, err)
	}
	return v, nil
}

// literal reads Python's words for what JSON spells otherwise.
func literal(text string) (v any, ok bool) {
	switch text {
	case "True":
		return true, true
	case "False":
		return false, true
	case "None":
		return nil, true
	}
	return nil, false
}

// string is the value of a text that is not JSON: itself, but for Python's literals.
func (e *evaluator) string(k *rawKey, parts []part, text string) any {
	if v, ok := literal(text); ok {
		k.word = text
		return v
	}
	unquoted := slices.ContainsFunc(parts, func(p part) bool { return p.ref && !p.quoted })
	if unquoted && strings.ContainsAny(text[:min(1, len(text))], "[{") {
		e.warn(k, "%s is a string, not a list or an object: a reference to a string needs quotes in it, as [\"${section.key}\"]", k.text)
	}
	return text
}

// warn notes what is legal but probably not meant.
func (e *evaluator) warn(k *rawKey, format string, args ...any) {
	e.doc.warnings = append(e.doc.warnings, fail(k.pos, format, args...).Error())
}

// asValue returns the section as what a reference to it stands for: an object. Only
// its own form changes; the sections in it are written inside it in any case.
func (s *Section) asValue() *Section {
	if s.inline {
		return s
	}
	c := *s
	c.inline = true
	return &c
}
