package config

import (
	"strings"
	"unicode/utf8"
)

// Override is a value from the command line that replaces one of a config, or adds one
// to a section that exists.
type Override struct {
	Path string // section.key, as "training.batch_size"
	Raw  string // read as a value in a file is: JSON, else a string; may hold ${...}
}

// String returns the override as the option that sets it, fit for a message.
func (o Override) String() string { return printable(o.pos().Source) }

func (o Override) pos() Pos { return Pos{Source: "--" + clip(o.Path)} }

// SplitOverrides takes the overrides out of command-line arguments, by spaCy's
// rules: a long option with a dot in its name is one, as "--training.max_steps 1000",
// "--training.max_steps=1000" or, before another long option or at the end, "--training.fast", which means
// true. In the form with '=' a '-' in the name stands for '_'. Options that isFlag
// knows (by name without dashes; nil knows none), options without a dot, other words, and all
// that follows "--" are left in rest, in order.
func SplitOverrides(args []string, isFlag func(name string) bool) (rest []string, o []Override, err error) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return append(rest, args[i:]...), o, nil
		}
		name, raw, inline := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !strings.HasPrefix(arg, "--") || !strings.Contains(name, ".") || isFlag != nil && isFlag(name) {
			rest = append(rest, arg)
			continue
		}
		switch {
		case inline:
			name = strings.ReplaceAll(name, "-", "_")
		case i+1 < len(args) && !strings.HasPrefix(args[i+1], "--"):
			i++
			raw = args[i]
		default:
			raw = "true"
		}
		if section, key, _ := cutLast(name); section == "" || key == "" {
			return nil, nil, fail(Override{Path: name}.pos(), "not an override; write --section.key value")
		}
		o = append(o, Override{Path: name, Raw: raw})
	}
	return rest, o, nil
}

// override puts a value into the raw text of a section.
func (d *document) override(o Override) error {
	pos := o.pos()
	if !utf8.ValidString(o.Path) || !utf8.ValidString(o.Raw) {
		return fail(pos, "an override has to be UTF-8 text")
	}
	name, key, nested := cutLast(o.Path)
	if !nested || name == "" || !validKey(key) {
		return fail(pos, "not a section value that can be overridden; write section.key")
	}
	section := d.byName[name]
	if section == nil {
		return fail(pos, "not a value that can be overridden: %s has no section [%s]%s", d.name, name, didYouMean(name, d.names()))
	}
	for _, child := range section.children {
		if child.name == o.Path {
			return fail(pos, "not a value that can be overridden: [%s] is a section; override one of its keys", o.Path)
		}
	}
	text := strings.TrimSpace(o.Raw)
	if k := section.key(key); k != nil {
		k.text, k.pos = text, pos
		return nil
	}
	section.add(&rawKey{name: key, text: text, pos: pos})
	return nil
}

// validKey says whether a line of a config could set the key.
func validKey(key string) bool {
	return key != "" && strings.TrimSpace(key) == key && !strings.ContainsAny(key, "=:\n") && !strings.ContainsAny(key[:1], "[#;")
}
