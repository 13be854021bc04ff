package config

import (
	"cmp"
	"slices"
	"strings"
)

// maxNesting is the largest number of parts in the name of a section.
const maxNesting = 32

// link attaches each section to its parent. Parents must be written explicitly, except
// for those named '*', which hold positional arguments.
func (d *document) link() error {
	delete(d.byName, "DEFAULT") // Python's section of defaults; lex accepts only an empty one
	d.sections = slices.DeleteFunc(d.sections, func(s *rawSection) bool { return s.name == "DEFAULT" })
	byDepth := slices.Clone(d.sections)
	slices.SortStableFunc(byDepth, func(a, b *rawSection) int { return depth(a.name) - depth(b.name) })
	for _, s := range byDepth {
		if depth(s.name) > maxNesting {
			return fail(s.pos, "the section is nested more than %d levels deep", maxNesting)
		}
		if strings.HasPrefix(s.name, "@") {
			return fail(s.pos, "the top level of a config cannot be a reference to a registered function; put %s into a section", s.name)
		}
		if err := d.adopt(s); err != nil {
			return err
		}
	}
	return nil
}

func depth(section string) int { return strings.Count(section, ".") + 1 }

// adopt finds or creates the parent of a section.
func (d *document) adopt(s *rawSection) error {
	parentName, own, nested := cutLast(s.name)
	if !nested {
		return nil
	}
	parent := d.byName[parentName]
	if parent == nil {
		if _, last, _ := cutLast(parentName); last != "*" {
			return fail(s.pos, "section [%s] has no parent: section [%s] is not defined%s",
				s.name, parentName, cmp.Or(didYouMean(parentName, d.names()), "; add that line above this one"))
		}
		parent = d.add(parentName, s.pos)
		if err := d.adopt(parent); err != nil {
			return err
		}
	}
	if k := parent.key(own); k != nil {
		return fail(s.pos, "conflicting values: section [%s] is also the key %q at line %d; keep one of the two", s.name, own, k.pos.Line)
	}
	parent.children = append(parent.children, s)
	return nil
}

// names returns the names of all sections.
func (d *document) names() []string {
	out := make([]string, len(d.sections))
	for i, s := range d.sections {
		out[i] = s.name
	}
	return out
}

// cutLast splits a dotted name before its last part.
func cutLast(name string) (before, last string, found bool) {
	at := strings.LastIndexByte(name, '.')
	if at < 0 {
		return "", name, false
	}
	return name[:at], name[at+1:], true
}
