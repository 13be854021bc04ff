package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/config"
)

// registry returns functions whose results show how they were called.
func registry(t *testing.T) *config.Registry {
	t.Helper()
	r := config.NewRegistry()
	add := func(registry, name string, f config.Func) { require.NoError(t, r.Register(registry, name, f)) }
	add("layers", "dense.v1", config.Func{
		Params: []config.Param{
			{Name: "width", Type: config.Int, Required: true},
			{Name: "dropout", Type: config.Float, Default: 0},
			{Name: "name", Type: config.String, Default: "d"},
			{Name: "bias", Type: config.Bool, Default: true},
			{Name: "init", Type: config.Any},
			{Name: "nI", Type: config.Int},
		},
		Make: func(a config.Args) (any, error) {
			if a.Int("width") == 13 {
				return nil, a.Errorf("width", "%d is unlucky", 13)
			}
			if a.Int("width") == 14 {
				return nil, errors.New("no fourteen")
			}
			return fmt.Sprintf("dense(%d %g %s %t %v %d)", a.Int("width"), a.Float("dropout"), a.String("name"), a.Bool("bias"),
				a.Value("init"), a.Int("nI")), nil
		},
	})
	add("layers", "chain.v1", config.Func{
		Params: []config.Param{{Name: "layers", Variadic: true}, {Name: "sep", Type: config.String, Default: "+"}},
		Make: func(a config.Args) (any, error) {
			var names []string
			for _, l := range a.List("layers") {
				names = append(names, fmt.Sprint(l))
			}
			return strings.Join(names, a.String("sep")), nil
		},
	})
	add("initializers", "zero.v1", config.Func{Make: func(config.Args) (any, error) { return "zero", nil }})
	add("layers", "buggy.v1", config.Func{
		Params: []config.Param{{Name: "width", Type: config.Int, Default: 1}},
		Make:   func(a config.Args) (any, error) { return a.Float("width"), nil },
	})
	add("schedules", "list.v1", config.Func{
		Params: []config.Param{{Name: "values", Type: config.List, Required: true}},
		Make:   func(a config.Args) (any, error) { return len(a.List("values")), nil },
	})
	return r
}

func TestResolve(t *testing.T) {
	r := registry(t)
	for name, c := range map[string]struct {
		text string
		want any
	}{
		"defaults":          {"[m]\n@layers = dense.v1\nwidth = 8", "dense(8 0 d true <nil> 0)"},
		"all arguments":     {"[m]\n@layers = \"dense.v1\"\nwidth = 8.0\ndropout = 1\nname = \"e\"\nbias = 0\ninit = [1]\nnI = 2", "dense(8 1 e false [1] 2)"},
		"null for null":     {"[m]\n@layers = dense.v1\nwidth = 8\nnI = null\ninit = null", "dense(8 0 d true <nil> 0)"},
		"64 bits":           {"[m]\n@layers = dense.v1\nwidth = 8\ndropout = 18446744073709551615", "dense(8 1.8446744073709552e+19 d true <nil> 0)"},
		"nested":            {"[m]\n@layers = dense.v1\nwidth = 8\n[m.init]\n@initializers = zero.v1", "dense(8 0 d true zero 0)"},
		"nested inline":     {"[m]\n@layers = dense.v1\nwidth = 8\ninit = {\"@initializers\": \"zero.v1\"}", "dense(8 0 d true zero 0)"},
		"by reference":      {"[m]\n@layers = dense.v1\nwidth = 8\ninit = ${i}\n[i]\n@initializers = zero.v1", "dense(8 0 d true zero 0)"},
		"positional blocks": {"[m]\n@layers = chain.v1\n[m.*.z]\n@initializers = zero.v1\n[m.*.a]\n@layers = chain.v1\n* = [1, 2]\nsep = \"-\"", "zero+1-2"},
		"none":              {"[m]\n@layers = chain.v1", ""},
		"plain values":      {"[m]\nx = 1\ny = [{\"@initializers\": \"zero.v1\"}]\n[m.s]\nz = null", map[string]any{"x": int64(1), "y": []any{"zero"}, "s": map[string]any{"z": nil}}},
		"a list argument":   {"[m]\n@schedules = list.v1\nvalues = [1, 2, 3]", 3},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := r.Resolve(parse(t, c.text), "m")
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
	got, err := r.Resolve(parse(t, "[a]\n@initializers = zero.v1\n[b]\nx = 1"), "")
	require.NoError(t, err)
	require.Equal(t, map[string]any{"a": "zero", "b": map[string]any{"x": int64(1)}}, got)
}

func TestResolveErrors(t *testing.T) {
	r := registry(t)
	for name, c := range map[string]struct{ text, want string }{
		"two functions":     {"[m]\n@layers = dense.v1\n@initializers = zero.v1", "test.cfg:3: m: a block can refer to only one registered function, but this one has @layers and @initializers"},
		"unknown name":      {"[m]\n@layers = dens.v1", `test.cfg:2: m: there is no "dens.v1" in registry layers; did you mean "dense.v1"? (available: buggy.v1, chain.v1, dense.v1)`},
		"unknown registry":  {"[m]\n@layer = dense.v1", `test.cfg:2: m: unknown registry "layer"; did you mean "layers"?`},
		"no such registry":  {"[m]\n@tokenizers = x.v1", `unknown registry "tokenizers"; the registries are initializers, layers, schedules`},
		"name not a string": {"[m]\n@layers = [1]", "test.cfg:2: m: @layers must be a string, the name of a registered function; got the list [1]"},
		"unknown argument":  {"[m]\n@layers = dense.v1\nwidth = 1\ndropuot = 2", `test.cfg:4: m: layers -> dense.v1 has no argument "dropuot"; did you mean "dropout"?`},
		"no such argument":  {"[m]\n@layers = dense.v1\nhidden_size = 1", `its arguments are bias, dropout, init, nI, name, width`},
		"missing argument":  {"[m]\n\n@layers = dense.v1", `test.cfg:3: m: layers -> dense.v1 needs the argument "width", a whole number; add a line width = ...`},
		"wrong type":        {"[m]\n@layers = dense.v1\nwidth = \"x\"", `test.cfg:3: m.width: expected a whole number, got the string "x"`},
		"null for a number": {"[m]\n@layers = dense.v1\nwidth = null", "test.cfg:3: m.width: expected a whole number, got null"},
		"null over default": {"[m]\n@layers = dense.v1\nwidth = 1\ndropout = null", "test.cfg:4: m.dropout: expected a number, got null"},
		"a resolved block":  {"[m]\n@layers = dense.v1\nwidth = {\"@schedules\": \"list.v1\", \"values\": []}", "test.cfg:3: m.width: expected a whole number, got a Go value of type int"},
		"not positional":    {"[m]\n@layers = dense.v1\nwidth = 1\n* = [1]", "test.cfg:4: m: layers -> dense.v1 takes no positional arguments"},
		"variadic by name":  {"[m]\n@layers = chain.v1\nlayers = [1]", `test.cfg:3: m: layers -> chain.v1 has no argument "layers"`},
		"positional scalar": {"[m]\n@layers = chain.v1\n* = 3", "test.cfg:3: m.*: positional arguments must be a list or a section, got 3"},
		"deep inside":       {"[m]\n@layers = chain.v1\n[m.*.a]\n@layers = dense.v1", `test.cfg:4: m.*.a: layers -> dense.v1 needs the argument "width"`},
		"Make fails":        {"[m]\n@layers = dense.v1\nwidth = 13", "test.cfg:3: m.width: 13 is unlucky"},
		"plain error":       {"[m]\n@layers = dense.v1\nwidth = 14", "test.cfg:2: m: dense.v1: no fourteen"},
		"bug in function":   {"[m]\n@layers = buggy.v1", `there is a bug in the registered function layers -> buggy.v1: its Make reads the parameter "width", which is not declared as a number`},
		"no section":        {"[n]", `test.cfg: section [m] is not defined; did you mean "n"?`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.Resolve(parse(t, c.text), "m")
			require.ErrorContains(t, err, c.want)
			require.ErrorAs(t, err, new(*config.Error))
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestRegisterErrors(t *testing.T) {
	mk := func(config.Args) (any, error) { return nil, nil }
	for name, f := range map[string]config.Func{
		"no Make":               {},
		"name twice":            {Params: []config.Param{{Name: "a"}, {Name: "a"}}, Make: mk},
		"no name":               {Params: []config.Param{{}}, Make: mk},
		"two variadic":          {Params: []config.Param{{Name: "a", Variadic: true}, {Name: "b", Variadic: true}}, Make: mk},
		"default of wrong type": {Params: []config.Param{{Name: "a", Type: config.Int, Default: "x"}}, Make: mk},
		"required and default":  {Params: []config.Param{{Name: "a", Type: config.Int, Default: 1, Required: true}}, Make: mk},
	} {
		require.Error(t, config.NewRegistry().Register("r", "f.v1", f), name)
	}
	r := registry(t)
	require.ErrorContains(t, r.Register("layers", "chain.v1", config.Func{Make: mk}), "already registered")
	require.Equal(t, []string{"initializers", "layers", "schedules"}, r.Registries())
	require.Equal(t, []string{"buggy.v1", "chain.v1", "dense.v1"}, r.Names("layers"))
	params, ok := r.Params("layers", "dense.v1")
	require.True(t, ok)
	require.Equal(t, 0.0, params[1].Default, "defaults have the parameter's type")
}
