package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Resolve creates the objects that a section describes ("" is the whole config). A section with a
// key such as @layers = "name.v1" is a call: that function of that registry gets the other keys as
// arguments, and the values under '*' as positional arguments. Its result replaces the section.
// Arguments are resolved before the call, depth first. Other sections become map[string]any, and
// lists become []any of resolved values.
func (r *Registry) Resolve(c *Config, section string) (any, error) {
	if section != "" {
		e, ok := c.find(section)
		if !ok {
			return nil, fail(c.root.pos, "section [%s] is not defined%s", section, didYouMean(section, c.root.Keys()))
		}
		return (&resolution{r, 0}).value(section, e.Value)
	}
	return (&resolution{r, 0}).value("", c.root)
}

// A resolution is one call of Resolve.
type resolution struct {
	*Registry
	calls int // of functions so far
}

// maxCalls limits the calls of one resolution. Lazy arguments can multiply them: a short
// config could otherwise use unbounded memory.
const maxCalls = 1 << 16

func (r *resolution) value(path string, v any) (any, error) {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			var err error
			if out[i], err = r.value(fmt.Sprintf("%s[%d]", path, i), x); err != nil {
				return nil, err
			}
		}
		return out, nil
	case *Section:
		return r.section(path, v)
	}
	return v, nil
}

// section resolves a section as a call or as a map.
func (r *resolution) section(path string, s *Section) (any, error) {
	var call *Entry
	for i, e := range s.entries {
		if !strings.HasPrefix(e.Key, "@") {
			continue
		}
		if call != nil {
			return nil, fail(e.Pos, "%s: a block can refer to only one registered function, but this one has %s and %s", path, call.Key, e.Key)
		}
		call = &s.entries[i]
	}
	if call != nil {
		return r.call(path, s, *call)
	}
	out := make(map[string]any, len(s.entries))
	for _, e := range s.entries {
		v, err := r.value(join(path, e.Key), e.Value)
		if err != nil {
			return nil, err
		}
		out[e.Key] = v
	}
	return out, nil
}

// call resolves the arguments of a block and calls its function.
func (r *resolution) call(path string, s *Section, at Entry) (any, error) {
	f, name, err := r.lookup(path, at)
	if err != nil {
		return nil, err
	}
	if r.calls++; r.calls > maxCalls {
		return nil, fail(at.Pos, "%s: the config calls more than %d functions; make it smaller", path, maxCalls)
	}
	b := &block{
		path: path, call: at.Key[1:] + " -> " + name, pos: at.Pos, params: f.Params,
		values: make(map[string]any), given: make(map[string]Pos), again: make(map[string]func() (any, error)),
	}
	for _, e := range s.entries {
		if e.Key == at.Key {
			continue
		}
		if err := r.argument(b, e); err != nil {
			return nil, err
		}
	}
	if err := b.fill(); err != nil {
		return nil, err
	}
	out, err := f.Make(Args{b})
	if b.misuse != "" {
		return nil, fail(b.pos, "%s: there is a bug in the registered function %s: %s", path, b.call, b.misuse)
	}
	var located *Error
	if err != nil && !errors.As(err, &located) {
		cause := err
		wrapped := fail(b.pos, "%s: %s: %v", path, name, cause)
		wrapped.Err = cause
		err = wrapped
	}
	return out, err
}

// lookup finds the function that an @ key names.
func (r *Registry) lookup(path string, at Entry) (Func, string, error) {
	registry := at.Key[1:]
	funcs, ok := r.byName[registry]
	if !ok {
		hint := didYouMean(registry, r.Registries())
		if hint == "" {
			hint = "; the registries are " + listed(r.Registries())
		}
		return Func{}, "", fail(at.Pos, "%s: unknown registry %q%s", path, registry, hint)
	}
	name, ok := at.Value.(string)
	if !ok {
		return Func{}, "", fail(at.Pos, "%s: %s must be a string, the name of a registered function; got %s", path, at.Key, Describe(at.Value))
	}
	f, ok := funcs[name]
	if !ok {
		names := slices.Collect(maps.Keys(funcs))
		return Func{}, "", fail(at.Pos, "%s: there is no %q in registry %s%s (available: %s)",
			path, name, registry, didYouMean(name, names), listed(names))
	}
	return f, name, nil
}

// argument resolves one key of a block and checks it against the parameters.
func (r *resolution) argument(b *block, e Entry) error {
	i := slices.IndexFunc(b.params, func(p Param) bool {
		return p.Variadic == (e.Key == "*") && (p.Variadic || p.Name == e.Key)
	})
	where := join(b.path, e.Key)
	if i < 0 {
		return b.unknown(e)
	}
	p := b.params[i]
	b.given[p.Name] = e.Pos
	if p.Lazy {
		b.again[p.Name] = func() (any, error) {
			v, err := r.value(where, e.Value)
			if err != nil {
				return nil, err
			}
			return checked(where, e, p, v)
		}
		return nil
	}
	var v any
	var err error
	if p.Variadic {
		v, err = r.positional(where, e, p)
	} else if v, err = r.value(where, e.Value); err == nil {
		v, err = checked(where, e, p, v)
	}
	b.values[p.Name] = v
	return err
}

// unknown returns the error for a key that is not a parameter.
func (b *block) unknown(e Entry) error {
	if e.Key == "*" {
		return fail(e.Pos, "%s: %s takes no positional arguments", b.path, b.call)
	}
	var names []string
	for _, p := range b.params {
		if !p.Variadic {
			names = append(names, p.Name)
		}
	}
	hint := didYouMean(e.Key, names)
	if hint == "" {
		hint = "; its arguments are " + listed(names)
	}
	return fail(e.Pos, "%s: %s has no argument %q%s", b.path, b.call, e.Key, hint)
}

// checked converts a value to the parameter's type. Null is accepted if the parameter's
// default is null.
func checked(where string, e Entry, p Param, v any) (any, error) {
	if v == nil && p.Default == nil && !p.Required {
		return nil, nil
	}
	out, ok := p.Type.convert(v)
	if !ok {
		return nil, fail(e.Pos, "%s: %s", where, p.Type.mismatch(v))
	}
	if p.Is != nil && !p.Is(out) {
		return nil, fail(e.Pos, "%s: expected %s, got %s", where, phrase(withArticle(p.form())), Describe(v))
	}
	return out, nil
}

// positional resolves the values under '*': a list, or a section whose keys are labels.
func (r *resolution) positional(where string, e Entry, p Param) ([]any, error) {
	var items []Entry
	switch v := e.Value.(type) {
	case []any:
		for i, x := range v {
			items = append(items, Entry{Key: fmt.Sprint(i), Value: x, Pos: e.Pos})
		}
	case *Section:
		items = v.entries
	default:
		return nil, fail(e.Pos, "%s: positional arguments must be a list or a section, got %s", where, Describe(v))
	}
	out := make([]any, 0, len(items))
	for _, item := range items {
		v, err := r.value(join(where, item.Key), item.Value)
		if err != nil {
			return nil, err
		}
		if v, err = checked(join(where, item.Key), item, Param{Type: p.Type, Form: p.Form, Is: p.Is, Required: true}, v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// missing returns the error for a required argument that is not set.
func (b *block) missing(p Param) error {
	key := join(b.path, p.Name)
	switch {
	case p.Variadic:
		return fail(b.pos, "%s: %s needs at least one positional argument, %s; add a section [%s.*.name]", b.path, b.call, phrase(withArticle(p.form())), b.path)
	case p.Is != nil:
		return fail(b.pos, "%s: %s needs the argument %q, %s; add a section [%s]", b.path, b.call, p.Name, phrase(withArticle(p.form())), key)
	}
	return fail(b.pos, "%s: %s needs the argument %q, %s; add a line %s = ...", b.path, b.call, p.Name, p.Type.article(), p.Name)
}

// fill sets defaults for the parameters that the config does not set, and fails if one is required.
func (b *block) fill() error {
	for _, p := range b.params {
		if _, ok := b.given[p.Name]; ok || p.Variadic && !p.Required {
			continue
		}
		if p.Required {
			return b.missing(p)
		}
		b.values[p.Name] = p.Default
	}
	return nil
}
