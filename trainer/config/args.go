package config

// Args are the arguments of one call of a registered function, already checked and with
// defaults filled in. Accessors must use a name and type that the function's Params
// declare. Otherwise they return zero and the call fails, with a message for the author of
// the function.
type Args struct {
	block *block
}

// block is a call in progress.
type block struct {
	path   string // path of the section
	call   string // "layers -> name"
	pos    Pos    // of the line that names the function
	params []Param
	values map[string]any                 // by parameter, including defaults
	given  map[string]Pos                 // by parameter, only those that the config sets
	again  map[string]func() (any, error) // by lazy parameter that the config sets
	misuse phrase
}

// Int returns an argument of type Int; 0 for null.
func (a Args) Int(name string) int { return arg[int](a, name, Int) }

// Float returns an argument of type Float; 0 for null.
func (a Args) Float(name string) float64 { return arg[float64](a, name, Float) }

// Bool returns an argument of type Bool; false for null.
func (a Args) Bool(name string) bool { return arg[bool](a, name, Bool) }

// String returns an argument of type String; "" for null.
func (a Args) String(name string) string { return arg[string](a, name, String) }

// List returns an argument of type List, or the positional arguments if name is the
// variadic parameter; nil for null and for no arguments.
func (a Args) List(name string) []any { return arg[[]any](a, name, List) }

// Value returns an argument of any type, nil for null.
func (a Args) Value(name string) any {
	if p := a.param(name); p == nil {
		a.misused(name, "undeclared")
	} else if p.Lazy {
		a.misused(name, "lazy")
	}
	return a.block.values[name]
}

// New resolves a lazy argument once more: the functions in it are called again, so that
// results of two calls share nothing. It returns nil if the config does not set the argument.
func (a Args) New(name string) (any, error) {
	if p := a.param(name); p == nil || !p.Lazy {
		a.misused(name, "not declared as lazy")
	}
	if resolve, ok := a.block.again[name]; ok {
		return resolve()
	}
	return nil, nil
}

// Pos returns the line that sets an argument, or the line of the block if the argument has
// its default.
func (a Args) Pos(name string) Pos {
	if pos, ok := a.block.given[name]; ok {
		return pos
	}
	return a.block.pos
}

// Errorf returns an error about an argument, for Make to return. It names the line that
// sets the argument and the argument's path.
func (a Args) Errorf(name, format string, args ...any) error {
	return fail(a.Pos(name), "%s: %s", join(a.block.path, name), phrasef(format, args...))
}

func arg[T any](a Args, name string, t Type) T {
	var zero T
	p := a.param(name)
	if p == nil || p.Type != t && (!p.Variadic || t != List) {
		a.misused(name, "not declared as "+t.article())
		return zero
	}
	v, _ := a.block.values[name].(T) // null is the zero value
	return v
}

func (a Args) param(name string) *Param {
	for i := range a.block.params {
		if a.block.params[i].Name == name {
			return &a.block.params[i]
		}
	}
	return nil
}

func (a Args) misused(name, how string) {
	a.block.misuse = phrasef("its Make reads the parameter %q, which is %s", name, how)
}

// join appends a key to a path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
