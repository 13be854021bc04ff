package config

import (
	"errors"
	"slices"
	"strings"
)

// Limits on references, so that a short config cannot use unbounded memory.
const (
	maxDepth  = 10       // length of a chain of references
	maxSize   = 4 << 20  // of a value after substitution, in bytes, approximately
	maxCopied = 16 << 20 // of everything that references copy, in bytes
)

// progress is the state of evaluating a key or section.
type progress uint8

const (
	untouched progress = iota
	inProgress
	done
)

// cost is what a value needs: the length of its longest chain of references, and its
// approximate size if written out.
type cost struct{ depth, size int }

// add adds the cost of a part of the value.
func (c *cost) add(part cost) {
	c.depth = max(c.depth, part.depth)
	c.size = min(c.size+part.size, maxSize+1) // cannot overflow
}

// evaluator turns raw values into the tree. It evaluates each key once, possibly early
// because of a reference.
type evaluator struct {
	doc    *document
	trail  []string // the values being evaluated; each refers to the next
	copied int      // bytes copied by references so far

	referred map[string]bool // see Config
}

// tree evaluates the whole document.
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

// section evaluates a section and everything below it.
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

// errCycle is returned to the reference that closes a cycle.
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
		return nil, fail(k.pos, "the chain of references behind %s.%s is longer than %d; shorten it", k.section.name, k.name, maxDepth)
	}
	if len(k.text) > 1 && k.text[0] == '\'' && strings.HasSuffix(k.text, "'") {
		e.warn(k, "%s is in single quotes, which become part of the value; use double quotes for a JSON string", k.text)
	}
	k.state, k.value = done, v
	return v, nil
}

// text evaluates the raw value of a key: it expands references, then reads the result as
// JSON, or else as a string.
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

// literal recognises Python's True, False and None.
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

// string returns the value of a text that is not JSON: the text itself, or one of
// Python's literals.
func (e *evaluator) string(k *rawKey, parts []part, text string) any {
	if v, ok := literal(text); ok {
		k.word = text
		return v
	}
	unquoted := slices.ContainsFunc(parts, func(p part) bool { return p.ref && !p.quoted })
	if unquoted && strings.ContainsAny(text[:min(1, len(text))], "[{") {
		e.warn(k, "%s is a string, not a list or an object; put quotes around references to strings, as in [\"${section.key}\"]", k.text)
	}
	return text
}

// warn records something that is legal but probably a mistake.
func (e *evaluator) warn(k *rawKey, format string, args ...any) {
	e.doc.warnings = append(e.doc.warnings, fail(k.pos, format, args...).Error())
}

// asValue returns the section in the form that a reference to it has: an object. Only the
// section itself changes; the sections below it are written inside the object anyway.
func (s *Section) asValue() *Section {
	if s.inline {
		return s
	}
	c := *s
	c.inline = true
	return &c
}
