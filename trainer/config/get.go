package config

import (
	"fmt"
	"math"
	"strings"
)

// Entry returns the value or section at a path such as "training.batch_size", and the line that
// sets it.
func (c *Config) Entry(path string) (Entry, bool) { return c.find(path) }

// Section returns the section or object at a path; "" is the root.
func (c *Config) Section(path string) (*Section, bool) {
	if path == "" {
		return c.root, true
	}
	e, _ := c.find(path)
	s, ok := e.Value.(*Section)
	return s, ok
}

// find follows a path down the tree. The rest of the path may be a single key that contains dots.
func (c *Config) find(path string) (Entry, bool) {
	s := c.root
	for {
		if e, ok := s.Get(path); ok {
			return e, true
		}
		head, rest, ok := strings.Cut(path, ".")
		if !ok {
			return Entry{}, false
		}
		e, _ := s.Get(head)
		if s, ok = e.Value.(*Section); !ok {
			return Entry{}, false
		}
		path = rest
	}
}

// get finds the value at a path and converts it. If it is absent or null, get returns fallback.
func get[T any](c *Config, path string, fallback T, convert func(any) (T, bool), kind Type) (T, error) {
	e, ok := c.find(path)
	if !ok || e.Value == nil {
		return fallback, nil
	}
	v, ok := convert(e.Value)
	if !ok {
		return fallback, fail(e.Pos, "%s: %s", path, kind.mismatch(e.Value))
	}
	return v, nil
}

// Int returns a whole number, or fallback if the path is absent or null. A float without a
// fraction counts as a whole number.
func (c *Config) Int(path string, fallback int) (int, error) {
	return get(c, path, fallback, toInt, Int)
}

// String returns a string, or fallback if the path is absent or null. A whole number counts as the
// string of its digits, so that names like 2024 need no quotes.
func (c *Config) String(path, fallback string) (string, error) {
	return get(c, path, fallback, toString, String)
}

// CheckKeys checks that a section has only the known keys and subsections ("" is the root, whose
// keys are the sections). It fails for the first unknown one and suggests the most similar known
// name. A missing section passes.
func (c *Config) CheckKeys(section string, known ...string) error {
	s, ok := c.Section(section)
	if !ok {
		return nil
	}
	allowed := make(map[string]bool, len(known))
	for _, k := range known {
		allowed[k] = true
	}
	for _, e := range s.entries {
		if allowed[e.Key] {
			continue
		}
		hint := didYouMean(e.Key, known)
		if hint == "" {
			hint = "; valid names are " + listed(known)
		}
		if section == "" {
			return fail(e.Pos, "there is no section [%s]%s", e.Key, hint)
		}
		return fail(e.Pos, "section [%s] has no key %q%s", section, e.Key, hint)
	}
	return nil
}

func toInt(v any) (int, bool) {
	switch v := v.(type) {
	case int64:
		return int(v), int64(int(v)) == v
	case float64:
		return int(v), v == math.Trunc(v) && math.Abs(v) < 1<<53 && float64(int(v)) == v
	}
	return 0, false
}

func toFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

func toBool(v any) (bool, bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case int64:
		return v == 1, v == 0 || v == 1
	}
	return false, false
}

func toString(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case int64, uint64:
		return fmt.Sprint(v), true
	}
	return "", false
}
