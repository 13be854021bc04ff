package config

import (
	"slices"
	"strings"
)

// Fill returns a copy of the configuration in which every block also sets the arguments
// that it leaves to their defaults, at any depth. It looks up functions but does not call
// them. Arguments without a default stay absent.
func (r *Registry) Fill(c *Config) (*Config, error) {
	root, err := r.fillSection("", c.root)
	if err != nil {
		return nil, err
	}
	return &Config{name: c.name, root: root, warnings: c.warnings, referred: c.referred}, nil
}

// fillValue fills the blocks inside a value.
func (r *Registry) fillValue(path string, v any) (any, error) {
	switch v := v.(type) {
	case *Section:
		return r.fillSection(path, v)
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			var err error
			if out[i], err = r.fillValue(path, x); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

func (r *Registry) fillSection(path string, s *Section) (*Section, error) {
	out := *s
	out.entries = nil
	for _, e := range s.entries {
		var err error
		if e.Value, err = r.fillValue(join(path, e.Key), e.Value); err != nil {
			return nil, err
		}
		out.entries = append(out.entries, e)
	}
	for _, e := range s.entries {
		if !strings.HasPrefix(e.Key, "@") {
			continue
		}
		f, _, err := r.lookup(path, e)
		if err != nil {
			return nil, err
		}
		out.entries = slices.Insert(out.entries, out.firstSubsection(), f.defaults(s, e.Pos)...)
	}
	return &out, nil
}

// defaults returns entries for the arguments that a block does not set.
func (f Func) defaults(s *Section, pos Pos) []Entry {
	var out []Entry
	for _, p := range f.Params {
		if _, given := s.Get(p.Name); given || p.Required || p.Variadic {
			continue
		}
		v := widen(p.Default)
		switch v.(type) {
		case nil, bool, int64, float64, string, []any:
			out = append(out, Entry{Key: p.Name, Value: v, Pos: pos})
		}
	}
	return out
}

// firstSubsection returns the index after the last key.
func (s *Section) firstSubsection() int {
	for i, e := range s.entries {
		if sub, ok := e.Value.(*Section); ok && !sub.inline {
			return i
		}
	}
	return len(s.entries)
}
