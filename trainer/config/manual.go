package config

import (
	"fmt"
	"slices"
)

// A Manual documents what a program reads from configs: its keys and functions, and
// their meaning. The program reads keys through the Manual, so it cannot read a key that
// is not documented.
type Manual struct {
	Chapters []Chapter
	Registry *Registry
}

// A Chapter documents a section.
type Chapter struct {
	Section string
	Doc     string // what the section is for
	Keys    []Key
	// Calls is the registry of the function that the section names, such as "layers"
	// for @layers; "" for a section of keys. The function's arguments are then the
	// section's keys.
	Calls string
	// Absent is what a config without the section means; "" if it must name a function.
	Absent string
}

// A Key is a key of a section.
type Key struct {
	Name    string
	Doc     string // meaning, in a few words
	Type    Type
	Form    string // accepted values, if Type is not specific enough
	Least   int    // smallest value of an Int
	Default any    // an int or a string, depending on Type; nil for the zero value
	Absent  string // meaning of a missing key, if Default does not show it
	Option  string // command-line option that overrides the key, if any
	Origin  string // where the key comes from
}

// Check checks that the documented sections have only documented keys. Sections that name
// a function are checked when the function is called.
func (m Manual) Check(c *Config) error {
	if err := m.checkSections(c); err != nil {
		return err
	}
	for _, chapter := range m.Chapters {
		if chapter.Calls != "" {
			continue
		}
		if err := c.CheckKeys(chapter.Section, chapter.names()...); err != nil {
			return err
		}
	}
	return nil
}

// checkSections finds a section that is probably misspelled: its name is similar to that
// of a documented section, which the config lacks, and no other section refers to it. Other
// sections are the user's own.
func (m Manual) checkSections(c *Config) error {
	var lacking []string
	for _, chapter := range m.Chapters {
		if _, there := c.Section(chapter.Section); !there {
			lacking = append(lacking, chapter.Section)
		}
	}
	root, _ := c.Section("")
	for _, e := range root.entries {
		known := slices.ContainsFunc(m.Chapters, func(x Chapter) bool { return x.Section == e.Key })
		if hint := didYouMean(e.Key, lacking); hint != "" && !known && !c.referred[e.Key] {
			return fail(e.Pos, "nothing reads section [%s]%s", e.Key, hint)
		}
	}
	return nil
}

// Int returns the value of a documented whole number, or its default.
func (m Manual) Int(c *Config, path string) (int, error) {
	k, err := m.key(path, Int)
	if err != nil {
		return 0, err
	}
	fallback, _ := k.Default.(int)
	e, there := c.find(path)
	n, err := c.Int(path, fallback)
	if err == nil && there && e.Value != nil && n < k.Least {
		err = fail(e.Pos, "%s: must be at least %d, not %d", path, k.Least, n)
	}
	return n, err
}

// String returns the value of a documented string, or its default.
func (m Manual) String(c *Config, path string) (string, error) {
	k, err := m.key(path, String)
	if err != nil {
		return "", err
	}
	fallback, _ := k.Default.(string)
	return c.String(path, fallback)
}

// key finds a documented key.
func (m Manual) key(path string, t Type) (Key, error) {
	section, name, _ := cutLast(path)
	if _, k, ok := m.find(section, name); ok && k.Type == t {
		return k, nil
	}
	return Key{}, fmt.Errorf("config: the manual has no %s %s", t, path)
}

// find finds a key and its chapter.
func (m Manual) find(section, name string) (Chapter, Key, bool) {
	for _, c := range m.Chapters {
		if i := slices.Index(c.names(), name); c.Section == section && i >= 0 {
			return c, c.Keys[i], true
		}
	}
	return Chapter{}, Key{}, false
}

func (c Chapter) names() []string {
	out := make([]string, len(c.Keys))
	for i, k := range c.Keys {
		out[i] = k.Name
	}
	return out
}
