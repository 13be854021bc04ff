package config

import (
	"fmt"
	"maps"
	"slices"
)

// Param is an argument of a registered function.
type Param struct {
	Name string
	Doc  string // meaning, in a few words
	Type Type
	Form string // values that Make accepts, if Type is not specific enough
	// Is reports whether a value has the Form; nil means that Make checks it. It is asked after
	// Type, for each positional argument too, and not for a null that stands for no value.
	Is       func(v any) bool
	Default  any  // used if the config does not set it; nil is null
	Required bool // the config must set it
	// Variadic means that it receives the positional arguments, the values under '*', as a list. At
	// most one Param of a Func may be variadic; its Name is only for messages.
	Variadic bool
	// Lazy means that Make gets no value but resolves the argument itself, with Args.New, as
	// often as it needs a new one. Its Type is Any, it is not variadic, and it has no Default.
	Lazy bool
}

// Func is a function that configs call by name.
type Func struct {
	Doc    string // what it makes, in one line
	Params []Param
	// Make is called with arguments that have been checked against Params. Its errors are reported
	// with the line of the block; Args.Errorf reports the line of an argument instead.
	Make func(Args) (any, error)
}

// Registry maps names such as layers -> relu_relu_softmax.v1 to functions. Once filled, it is safe
// for concurrent use.
type Registry struct {
	byName map[string]map[string]Func
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	return &Registry{byName: make(map[string]map[string]Func)}
}

// Register adds a function to a registry ("layers", "optimizers") and creates the registry if
// needed. It fails if the name is taken or the parameters are inconsistent.
func (r *Registry) Register(registry, name string, f Func) error {
	if _, taken := r.byName[registry][name]; taken {
		return fmt.Errorf("config: %s -> %s is already registered", registry, name)
	}
	params, err := checkParams(f)
	if err != nil {
		return fmt.Errorf("config: %s -> %s: %w", registry, name, err)
	}
	if r.byName[registry] == nil {
		r.byName[registry] = make(map[string]Func)
	}
	f.Params = params
	r.byName[registry][name] = f
	return nil
}

// checkParams returns the parameters with defaults converted to their types.
func checkParams(f Func) ([]Param, error) {
	if f.Make == nil {
		return nil, fmt.Errorf("it has no Make")
	}
	params := slices.Clone(f.Params)
	seen := make(map[string]bool)
	variadic := false
	for i, p := range params {
		if p.Name == "" || seen[p.Name] {
			return nil, fmt.Errorf("parameter name %q is empty or used twice", p.Name)
		}
		seen[p.Name] = true
		if p.Variadic && variadic {
			return nil, fmt.Errorf("parameter %s is a second variadic parameter; only one is allowed", p.Name)
		}
		variadic = variadic || p.Variadic
		if p.Lazy && (p.Type != Any || p.Variadic || p.Default != nil) {
			return nil, fmt.Errorf("parameter %s is lazy; it must have the type Any and no default, and must not be variadic", p.Name)
		}
		if p.Default == nil {
			continue
		}
		v, ok := p.Type.convert(widen(p.Default))
		if !ok || p.Required || p.Variadic {
			return nil, fmt.Errorf("parameter %s cannot have the default %v", p.Name, p.Default)
		}
		params[i].Default = v
	}
	return params, nil
}

// widen converts Go's int and float32 to the types of the tree.
func widen(v any) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case float32:
		return float64(v)
	}
	return v
}

// Registries returns the names of the registries, sorted.
func (r *Registry) Registries() []string { return slices.Sorted(maps.Keys(r.byName)) }

// Names returns the names in a registry, sorted.
func (r *Registry) Names(registry string) []string {
	return slices.Sorted(maps.Keys(r.byName[registry]))
}

// Doc returns what a registered function makes, in one line; "" if there is no such function.
func (r *Registry) Doc(registry, name string) string { return r.byName[registry][name].Doc }

// Params returns the parameters of a registered function.
func (r *Registry) Params(registry, name string) ([]Param, bool) {
	f, ok := r.byName[registry][name]
	return slices.Clone(f.Params), ok
}
