package config

import (
	"errors"
	"fmt"
	"strings"
)

// part is a piece of a raw value: literal text, or the text between ${ and }.
type part struct {
	text   string
	ref    bool
	quoted bool // a reference inside a JSON string
}

// split splits a raw value at its references and turns $$ into a dollar sign.
func split(text string) ([]part, error) {
	var parts []part
	var literal strings.Builder
	quotes := quoting{json: text != "" && strings.ContainsRune(`"[{`, rune(text[0]))}
	flush := func() {
		if literal.Len() > 0 {
			parts = append(parts, part{text: literal.String()})
			literal.Reset()
		}
	}
	for i := 0; i < len(text); i++ {
		if text[i] != '$' {
			quotes.step(text[i])
			literal.WriteByte(text[i])
			continue
		}
		rest := text[i+1:]
		if strings.HasPrefix(rest, "$") {
			quotes.step('$')
			literal.WriteByte('$')
			i++
			continue
		}
		ref, closed := "", false
		if strings.HasPrefix(rest, "{") {
			ref, _, closed = strings.Cut(rest[1:], "}")
		}
		if !closed || ref == "" {
			return nil, errors.New("a dollar sign starts a reference; write ${section.key}, or $$ for a literal dollar sign")
		}
		flush()
		parts = append(parts, part{text: ref, ref: true, quoted: quotes.inside})
		i += len("{}") + len(ref)
	}
	flush()
	return parts, nil
}

// quoting scans a text that starts like JSON and tracks whether it is inside a string.
type quoting struct{ json, inside, escaped bool }

func (q *quoting) step(c byte) {
	switch {
	case !q.json:
	case q.escaped:
		q.escaped = false
	case c == '\\' && q.inside:
		q.escaped = true
	case c == '"':
		q.inside = !q.inside
	}
}

// substitute replaces references with values, in two ways: asJSON is a JSON text if the
// value is written as one (otherwise ""), and asText is the bare string. A string is
// inserted without quotes, as in confection: [${a.x}] with x = "y" is the string [y], not
// a list. Inside a JSON string it is escaped.
func (e *evaluator) substitute(k *rawKey, parts []part) (asJSON, asText string, err error) {
	var j, t strings.Builder
	section := "" // a reference to a section, which cannot be part of a string
	for _, p := range parts {
		if !p.ref {
			j.WriteString(p.text)
			t.WriteString(p.text)
			continue
		}
		to, err := e.refer(k, p.text)
		if err != nil {
			return "", "", err
		}
		if to.sections {
			if section = p.text; p.quoted {
				return "", "", sectionInString(k, section)
			}
		}
		bare := to.text()
		t.WriteString(bare)
		if p.quoted {
			quoted := appendString(nil, bare)
			bare = string(quoted[1 : len(quoted)-1])
		}
		j.WriteString(bare)
	}
	if strings.ContainsAny(k.text[:min(1, len(k.text))], `"[{`) {
		if asJSON = j.String(); section == "" {
			return asJSON, t.String(), nil
		}
		if _, err := parseJSON(asJSON, "", k.pos); err != errNotJSON {
			return asJSON, "", nil
		}
	}
	if section != "" {
		return "", "", sectionInString(k, section)
	}
	return asJSON, t.String(), nil
}

func sectionInString(k *rawKey, ref string) error {
	return fail(k.pos, "%s uses the section variable ${%s} inside a string; only single values can go there, so name one of its keys", k.name, ref)
}

// target is the value of a reference.
type target struct {
	value    any
	sections bool   // it is a section, or contains one by reference
	word     string // Python's literal, if it was written as one
}

// text returns the value for use inside a string: strings and Python's literals unchanged,
// everything else as JSON.
func (t target) text() string {
	if s, ok := t.value.(string); ok {
		return s
	}
	if t.word != "" {
		return t.word
	}
	return string(appendJSON(nil, t.value))
}

// refer evaluates the reference ${ref} in the value of k.
func (e *evaluator) refer(k *rawKey, ref string) (target, error) {
	var t target
	e.trail = append(e.trail, clip(k.section.name+"."+k.name))
	defer func() { e.trail = e.trail[:len(e.trail)-1] }()
	if len(e.trail) > maxDepth {
		return target{}, fail(k.pos, "the chain of references is longer than %d: %s", maxDepth, e.way())
	}
	key, section := e.doc.find(k, ref)
	var part cost
	var err error
	switch {
	case key != nil:
		e.read(k, key.section)
		t.value, err = e.key(key)
		t.word, t.sections, part = key.word, key.sections, key.cost
	case section != nil:
		e.read(k, section)
		t.value, err = e.section(section)
		t.sections, part = true, section.cost
	default:
		return target{}, fail(k.pos, "%s refers to ${%s}, which is neither a key nor a section%s", k.name, ref,
			didYouMean(strings.ReplaceAll(ref, ":", "."), e.doc.targets(k.section)))
	}
	if err == errCycle {
		return target{}, fail(k.pos, "%s refers back to itself: %s -> ${%s}", k.name, e.way(), ref)
	}
	if err != nil {
		return target{}, err
	}
	k.sections = k.sections || t.sections
	part.depth++
	k.cost.add(part)
	e.copied += part.size
	if k.cost.size > maxSize || e.copied > maxCopied { // before it is written out
		return target{}, fail(k.pos, "references expand to too much text: %s.%s is longer than %d MiB, or all references together are longer than %d MiB",
			k.section.name, k.name, maxSize>>20, maxCopied>>20)
	}
	return t, nil
}

// read notes that the value of from refers to a section or one of its keys.
func (e *evaluator) read(from *rawKey, section *rawSection) {
	reader, _, _ := strings.Cut(from.section.name, ".")
	if name, _, _ := strings.Cut(section.name, "."); name != reader {
		e.referred[name] = true
	}
}

// way returns the chain of references that led to the current one.
func (e *evaluator) way() phrase { return phrase(strings.Join(e.trail, " -> ")) }

// find looks up a reference in the value of from: section.key or section:key, a key of the
// same section, or a whole section, in this order. Only in x = ${x} does a section x come
// first. Both results are nil if nothing matches.
func (d *document) find(from *rawKey, ref string) (*rawKey, *rawSection) {
	ref = strings.ReplaceAll(ref, ":", ".")
	name, key, nested := cutLast(ref)
	section := d.byName[ref]
	holder := from.section
	if nested {
		holder = d.byName[name]
	}
	if holder == nil || holder.key(key) == nil {
		return nil, section
	}
	if !nested && section != nil && holder.key(key).text == from.text {
		return nil, section
	}
	return holder.key(key), nil
}

// targets returns everything that a reference in a section may name, for suggestions.
func (d *document) targets(from *rawSection) []string {
	names := d.names()
	for _, s := range d.sections {
		for _, k := range s.keys {
			names = append(names, fmt.Sprintf("%s.%s", s.name, k.name))
		}
	}
	for _, k := range from.keys {
		names = append(names, k.name)
	}
	return names
}
