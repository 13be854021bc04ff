package config

import (
	"strings"
	"unicode/utf8"
)

// Override is a value from the command line that replaces a value of the config, or adds one to an
// existing section.
type Override struct {
	Path string // section.key, such as "training.batch_size"
	Raw  string // read like a value in a file: JSON, else a string; may contain ${...}
}

// String returns the override as a command-line option, for messages.
func (o Override) String() string { return printable(o.pos().Source) }

func (o Override) pos() Pos { return Pos{Source: "--" + clip(o.Path)} }

// SplitOverrides extracts overrides from command-line arguments, by spaCy's rules: a long option
// with a dot in its name is an override. Its forms are "--training.max_steps 1000",
// "--training.max_steps=1000" and, before another long option or at the end, "--training.fast",
// which means true. In the form with '=', '-' in the name stands for '_'. Everything else stays in
// rest, in order: options for which isFlag returns true (it gets the name without dashes; nil
// matches none), options without a dot, other words, and everything after "--".
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

// override sets a value in the raw text of a section.
func (d *document) override(o Override) error {
	pos := o.pos()
	if !utf8.ValidString(o.Path) || !utf8.ValidString(o.Raw) {
		return fail(pos, "an override must be UTF-8 text")
	}
	name, key, nested := cutLast(o.Path)
	if !nested || name == "" || !validKey(key) {
		return fail(pos, "not a section value that can be overridden; write section.key")
	}
	section := d.byName[name]
	if section == nil {
		hint := didYouMean(name, d.names())
		if hint == "" && !strings.Contains(name, ".") {
			hint = phrasef(": add the line [%s] to set its keys here", name)
		}
		return fail(pos, "%s has no section [%s]%s", d.name, name, hint)
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

// validKey reports whether a line of a config could set the key.
func validKey(key string) bool {
	return key != "" && strings.TrimSpace(key) == key && !strings.ContainsAny(key, "=:\n") && !strings.ContainsAny(key[:1], "[#;")
}
