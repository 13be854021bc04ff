package config

import "slices"

// Section is a part of the tree: a [section], or an object {...} inside a value. Its entries are in
// file order, keys before subsections.
//
// Values are nil, bool, int64, uint64 (above the largest int64), float64, string, []any of these,
// and *Section.
type Section struct {
	path    string
	pos     Pos
	entries []Entry
	inline  bool // written as a value, not as [section]
}

// Entry is a value of a section with its key.
type Entry struct {
	Key   string
	Value any // see Section
	Pos   Pos // the line that sets it
}

// Path returns the dotted name under which the section was written, the path of the key for an
// object inside a value, or "" for the root.
func (s *Section) Path() string { return s.path }

// Pos returns the line of the section's header or value.
func (s *Section) Pos() Pos { return s.pos }

// Entries returns the entries in order.
func (s *Section) Entries() []Entry { return slices.Clone(s.entries) }

// Keys returns the names of the entries in order.
func (s *Section) Keys() []string {
	keys := make([]string, len(s.entries))
	for i, e := range s.entries {
		keys[i] = e.Key
	}
	return keys
}

// Get returns the entry with a key.
func (s *Section) Get(key string) (Entry, bool) {
	for _, e := range s.entries {
		if e.Key == key {
			return e, true
		}
	}
	return Entry{}, false
}
