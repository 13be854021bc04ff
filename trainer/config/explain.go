package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// Explain documents, for a terminal, a section, a key such as "training.batch_size", a
// registry such as "@layers", or a registered function such as "Adam.v1". With "" it
// lists everything. For any other name it fails and suggests the most similar name.
func (m Manual) Explain(name string) (string, error) {
	if name == "" {
		return m.contents(), nil
	}
	var parts []string
	for _, explain := range []func(string) (string, bool){m.section, m.keyOf, m.registry, m.function} {
		if text, ok := explain(name); ok {
			parts = append(parts, text)
		}
	}
	if parts == nil {
		hint := didYouMean(cmp.Or(m.versioned(name), name), m.Names())
		if hint == "" {
			hint = "; run it without a KEY to list all sections and functions"
		}
		return "", &Error{Pos: Pos{Source: "config explain"}, Msg: string(phrasef("there is no section, key or function %q%s", name, hint))}
	}
	return strings.Join(parts, "\n"), nil
}

// versioned returns the function that has a name without its version, in any case, or "".
func (m Manual) versioned(name string) string {
	for _, full := range m.Names() {
		if i := strings.LastIndex(full, ".v"); i >= 0 && strings.EqualFold(full[:i], name) {
			return full
		}
	}
	return ""
}

// contents lists the sections and the functions.
func (m Manual) contents() string {
	var sections, functions [][]string
	for _, c := range m.Chapters {
		sections = append(sections, []string{"[" + c.Section + "]", c.Doc})
	}
	for _, registry := range m.Registry.Registries() {
		functions = append(functions, []string{"@" + registry, strings.Join(m.Registry.Names(registry), ", ")})
	}
	return "Sections:\n" + columns(sections) + "\nFunctions:\n" + columns(functions)
}

// mostFunctions is the largest number of functions whose arguments are listed together.
const mostFunctions = 6

// section lists the keys of a section. If the section names a function, these are the
// arguments of all functions that it may name or, if there are many, the functions.
func (m Manual) section(name string) (string, bool) {
	i := slices.IndexFunc(m.Chapters, func(c Chapter) bool { return c.Section == name })
	if i < 0 {
		return "", false
	}
	c := m.Chapters[i]
	lines := [][]string{{"KEY", "TYPE", "DEFAULT", "MEANING"}}
	for _, k := range c.Keys {
		lines = append(lines, []string{k.Name, k.form(), k.defaultText(), k.Doc})
	}
	title := fmt.Sprintf("[%s]: %s\n", c.Section, c.Doc)
	if c.Calls == "" {
		return title + columns(lines), true
	}
	functions := m.Registry.Names(c.Calls)
	if len(functions) > mostFunctions {
		all, _ := m.registry(c.Calls)
		lines = append(lines, []string{"@" + c.Calls, "name", cmp.Or(c.Absent, "required"), "a function; its arguments are the other keys"})
		return title + columns(lines) + "\n" + all, true
	}
	lines = append(lines, []string{"@" + c.Calls, "name", cmp.Or(c.Absent, "required"), strings.Join(functions, ", ")})
	for _, p := range m.arguments(c.Calls) {
		meaning := p.Doc
		if len(p.of) < len(functions) {
			meaning += " (" + strings.Join(p.of, ", ") + ")"
		}
		lines = append(lines, []string{p.Key(), p.form(), p.defaultText(), meaning})
	}
	return title + columns(lines), true
}

// keyOf explains section.key.
func (m Manual) keyOf(name string) (string, bool) {
	section, key, _ := cutLast(name)
	if c, k, ok := m.find(section, key); ok {
		set := fmt.Sprintf("[%s] of the config, or --%s VALUE", c.Section, name)
		if k.Option != "" {
			set += fmt.Sprintf("; %s wins over both", k.Option)
		}
		return fmt.Sprintf("%s: %s\n", name, k.Doc) + columns([][]string{
			{"type", k.form()}, {"default", k.defaultText()}, {"set by", set}, {"from", k.Origin},
		}), true
	}
	i := slices.IndexFunc(m.Chapters, func(c Chapter) bool { return c.Section == section && c.Calls != "" })
	if i < 0 {
		return "", false
	}
	if key == "@"+m.Chapters[i].Calls {
		return m.registry(key)
	}
	var parts []string
	for _, p := range m.arguments(m.Chapters[i].Calls) {
		if p.Key() == key {
			parts = append(parts, fmt.Sprintf("%s: %s\n", name, p.Doc)+columns([][]string{
				{"type", p.form()}, {"default", p.defaultText()},
				{"set by", fmt.Sprintf("[%s] of the config, or --%s VALUE", section, name)}, {"from", strings.Join(p.of, ", ")},
			}))
		}
	}
	return strings.Join(parts, "\n"), parts != nil
}

// registry lists the functions of a registry; its name may start with @.
func (m Manual) registry(name string) (string, bool) {
	name = strings.TrimPrefix(name, "@")
	lines := [][]string{}
	for _, function := range m.Registry.Names(name) {
		lines = append(lines, []string{function, m.Registry.Doc(name, function)})
	}
	return fmt.Sprintf("@%s names one of these functions:\n", name) + columns(lines), len(lines) > 0
}

// function lists the arguments of all functions with a name, in any registry.
func (m Manual) function(name string) (string, bool) {
	var parts []string
	for _, registry := range m.Registry.Registries() {
		params, ok := m.Registry.Params(registry, name)
		if !ok {
			continue
		}
		text := fmt.Sprintf("@%s = %q: %s\n", registry, name, m.Registry.Doc(registry, name))
		if len(params) == 0 {
			parts = append(parts, text+"  It takes no arguments.\n")
			continue
		}
		lines := [][]string{{"ARGUMENT", "TYPE", "DEFAULT", "MEANING"}}
		for _, p := range params {
			lines = append(lines, []string{p.Key(), p.form(), p.defaultText(), p.Doc})
		}
		parts = append(parts, text+columns(lines))
	}
	return strings.Join(parts, "\n"), parts != nil
}

// An argument is a parameter that several functions of a registry share.
type argument struct {
	Param
	of []string // the functions that have it
}

// arguments returns the parameters of all functions of a registry. Equal parameters
// appear once.
func (m Manual) arguments(registry string) []argument {
	var out []argument
	for _, function := range m.Registry.Names(registry) {
		params, _ := m.Registry.Params(registry, function)
		for _, p := range params {
			i := slices.IndexFunc(out, func(a argument) bool {
				return a.Key() == p.Key() && a.Doc == p.Doc && a.form() == p.form() && a.defaultText() == p.defaultText()
			})
			if i < 0 {
				i, out = len(out), append(out, argument{Param: p})
			}
			out[i].of = append(out[i].of, function)
		}
	}
	return out
}

// Names returns every name that Explain accepts.
func (m Manual) Names() []string {
	var out []string
	for _, c := range m.Chapters {
		out = append(out, c.Section)
		for _, name := range c.names() {
			out = append(out, c.Section+"."+name)
		}
		for _, p := range m.arguments(c.Calls) {
			out = append(out, c.Section+"."+p.Key())
		}
	}
	for _, registry := range m.Registry.Registries() {
		out = append(append(out, "@"+registry), m.Registry.Names(registry)...)
	}
	return out
}

func (k Key) form() string {
	switch {
	case k.Form != "":
		return k.Form
	case k.Type == Int:
		return fmt.Sprintf("%s, at least %d", k.Type, k.Least)
	}
	return k.Type.String()
}

func (k Key) defaultText() string {
	if k.Absent != "" {
		return k.Absent
	}
	return string(appendJSON(nil, widen(k.Default)))
}

// Key returns the key that sets the argument: '*' for the positional arguments.
func (p Param) Key() string {
	if p.Variadic {
		return "*"
	}
	return p.Name
}

func (p Param) form() string {
	if p.Form != "" {
		return p.Form
	}
	return p.Type.String()
}

func (p Param) defaultText() string {
	switch {
	case p.Required:
		return "required"
	case p.Variadic:
		return "none"
	}
	return string(appendJSON(nil, widen(p.Default)))
}

// columns aligns rows of cells, indented.
func columns(lines [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		fmt.Fprintln(w, "  "+strings.Join(line, "\t"))
	}
	_ = w.Flush() // a Builder never fails
	return b.String()
}
