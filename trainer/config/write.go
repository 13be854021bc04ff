package config

import "strings"

// Text returns the configuration as a text that Parse reads back into an equal tree:
// overrides and references are expanded, every section follows its parent, and
// values are JSON.
func (c *Config) Text() string {
	var b []byte
	for _, e := range c.root.entries {
		if s, ok := e.Value.(*Section); ok {
			b = appendSection(b, e.Key, s)
		}
	}
	return string(b)
}

// appendSection appends a section's keys and then its subsections.
func appendSection(b []byte, path string, s *Section) []byte {
	if len(b) > 0 {
		b = append(b, '\n')
	}
	b = append(b, "["+path+"]\n"...)
	for _, e := range s.entries {
		if sub, ok := e.Value.(*Section); ok && !sub.inline {
			continue
		}
		b = append(b, e.Key+" = "...)
		b = append(b, strings.ReplaceAll(string(appendJSON(nil, e.Value)), "$", "$$")...)
		b = append(b, '\n')
	}
	for _, e := range s.entries {
		if sub, ok := e.Value.(*Section); ok && !sub.inline {
			b = appendSection(b, path+"."+e.Key, sub)
		}
	}
	return b
}

// JSON returns the tree as a JSON object in file order, indented by two spaces and ending
// with a newline.
func (c *Config) JSON() []byte {
	return append(appendIndented(nil, c.root, "\n"), '\n')
}

// appendIndented writes each section on several lines and everything else on one.
func appendIndented(b []byte, v any, newline string) []byte {
	s, ok := v.(*Section)
	if !ok || len(s.entries) == 0 {
		return appendJSON(b, v)
	}
	deeper := newline + "  "
	b = append(b, '{')
	for i, e := range s.entries {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, deeper...)
		b = append(appendString(b, e.Key), ": "...)
		b = appendIndented(b, e.Value, deeper)
	}
	return append(append(b, newline...), '}')
}

// SectionJSON returns the section or object at a path in the format of JSON, and false if
// there is none.
func (c *Config) SectionJSON(path string) ([]byte, bool) {
	s, ok := c.Section(path)
	if !ok {
		return nil, false
	}
	return append(appendIndented(nil, s, "\n"), '\n'), true
}
