package config

import (
	"errors"
	"fmt"
	"strings"
)

// part is a piece of a raw value: literal text, or what stands between ${ and }.
type part struct {
	text   string
	ref    bool
	quoted bool // a reference inside a JSON string
}

// split cuts a raw value at its references and makes $$ a dollar sign.
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
		end := strings.IndexByte(rest, '}')
		switch {
		case strings.HasPrefix(rest, "$"):
			quotes.step('$')
			literal.WriteByte('$')
			i++
		case strings.HasPrefix(rest, "{") && end > 1:
			flush()
			parts = append(parts, part{text: rest[1:end], ref: true, quoted: quotes.inside})
			i += end + 1
		default:
			return nil, errors.New("a dollar sign begins a reference; write ${section.key}, or $$ for the sign itself")
		}
	}
	flush()
	return parts, nil
}

// quoting follows a text that begins like JSON and knows whether it is inside a string.
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

// substitute puts values in the place of references, in two ways: asJSON is a
// JSON text if the value is written as one ("" else), asText the bare string.
func (e *evaluator) substitute(k *rawKey, parts []part) (asJSON, asText string, err error) {
	var j, t strings.Builder
	section := "" // a reference to one, which has no place in a string
	for _, p := range parts {
		if !p.ref {
			j.WriteString(p.text)
			t.WriteString(p.text)
			continue
		}
		v, err := e.refer(k, p.text)
		if err != nil {
			return "", "", err
		}
		if _, ok := v.(*Section); ok {
			if section = p.text; p.quoted {
				return "", "", sectionInString(k, section)
			}
		}
		bare := bareText(v)
		t.WriteString(bare)
		if p.quoted {
			quoted := appendString(nil, bare)
			j.Write(quoted[1 : len(quoted)-1])
		} else {
			j.Write(appendJSON(nil, v))
		}
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
	return fail(k.pos, "%s uses the section variable ${%s} inside a string; only single values have a place there: name a key of it", k.name, ref)
}

// bareText is a value inside a string: strings as they are, others as JSON.
func bareText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return string(appendJSON(nil, v))
}

// refer evaluates what ${ref} in the value of k stands for.
func (e *evaluator) refer(k *rawKey, ref string) (any, error) {
	e.trail = append(e.trail, k.section.name+"."+k.name)
	defer func() { e.trail = e.trail[:len(e.trail)-1] }()
	if len(e.trail) > maxDepth {
		return nil, fail(k.pos, "more than %d references follow one another: %s", maxDepth, strings.Join(e.trail, " -> "))
	}
	key, section := e.doc.find(k.section, ref)
	var v any
	var err error
	var part cost
	switch {
	case key != nil:
		v, err = e.key(key)
		part = key.cost
	case section != nil:
		v, err = e.section(section)
		part = section.cost
	default:
		return nil, fail(k.pos, "%s refers to ${%s}, which is neither a key nor a section%s", k.name, ref,
			didYouMean(strings.ReplaceAll(ref, ":", "."), e.doc.targets(k.section)))
	}
	if err == errCycle {
		return nil, fail(k.pos, "%s refers back to itself: %s -> ${%s}", k.name, strings.Join(e.trail, " -> "), ref)
	}
	if err != nil {
		return nil, err
	}
	part.depth++
	k.cost.add(part)
	e.copied += part.size
	if k.cost.size > maxSize || e.copied > maxCopied { // before it is written out
		return nil, fail(k.pos, "references bring in too much: %s.%s is longer than %d MiB, or all of them together than %d",
			k.section.name, k.name, maxSize>>20, maxCopied>>20)
	}
	return v, nil
}

// find looks a reference up: section.key or section:key, a key beside it, or a
// whole section, in this order. Both results are nil when there is no such thing.
func (d *document) find(from *rawSection, ref string) (*rawKey, *rawSection) {
	ref = strings.ReplaceAll(ref, ":", ".")
	name, key, nested := cutLast(ref)
	holder := from
	if nested {
		holder = d.byName[name]
	}
	if holder != nil {
		if k := holder.key(key); k != nil {
			return k, nil
		}
	}
	return nil, d.byName[ref]
}

// targets returns all that a reference in a section may name, for suggestions.
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
