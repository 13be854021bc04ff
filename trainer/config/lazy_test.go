package config_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/config"
)

// A lazy argument is resolved as often as Make wants, each time anew. An argument with a
// form is checked wherever it comes from.
func TestLazyArguments(t *testing.T) {
	r, made := config.NewRegistry(), 0
	even := config.Param{Name: "x", Form: "even number", Is: func(v any) bool { n, ok := v.(int); return ok && n%2 == 0 }}
	lazy := func(name string) config.Param {
		p := even
		p.Name, p.Lazy = name, true
		return p
	}
	require.NoError(t, r.Register("n", "next.v1", config.Func{
		Params: []config.Param{{Name: "fail", Type: config.Bool, Default: false}, {Name: "step", Type: config.Int, Default: 2}},
		Make: func(a config.Args) (any, error) {
			if a.Bool("fail") {
				return nil, errors.New("no more")
			}
			made += a.Int("step")
			return made, nil
		}}))
	require.NoError(t, r.Register("n", "times.v1", config.Func{
		Params: []config.Param{lazy("orig"), {Name: "n", Type: config.Int, Required: true}},
		Make: func(a config.Args) (any, error) {
			last := 0
			for range a.Int("n") {
				v, err := a.New("orig")
				if err != nil || v == nil {
					return v, err
				}
				last = v.(int)
			}
			return last, nil
		}}))
	all := even
	all.Variadic, all.Required = true, true
	require.NoError(t, r.Register("n", "all.v1", config.Func{
		Params: []config.Param{all, {Name: "also", Form: "even number", Is: even.Is}},
		Make:   func(a config.Args) (any, error) { return len(a.List("x")), nil }}))
	require.NoError(t, r.Register("n", "one.v1", config.Func{
		Params: []config.Param{{Name: "x", Form: "even number", Is: even.Is, Required: true}},
		Make:   func(a config.Args) (any, error) { return a.Value("x"), nil }}))
	require.NoError(t, r.Register("n", "reads.v1", config.Func{Params: []config.Param{lazy("orig")},
		Make: func(a config.Args) (any, error) { return a.Value("orig"), nil }}))
	require.NoError(t, r.Register("n", "calls.v1", config.Func{Params: []config.Param{even},
		Make: func(a config.Args) (any, error) { return a.New("x") }}))

	for text, want := range map[string]any{
		"@n = times.v1\nn = 3\n[m.orig]\n@n = next.v1":                                      6,
		"@n = times.v1\nn = 3\n[m.orig]\n@n = times.v1\nn = 2\n[m.orig.orig]\n@n = next.v1": 12,
		"@n = times.v1\nn = 0\n[m.orig]\n@n = next.v1\nfail = true":                         0,
		"@n = times.v1\nn = 2":                                      nil,
		"@n = times.v1\nn = 2\norig = null":                         nil,
		"@n = all.v1\n[m.*.a]\n@n = next.v1\n[m.*.b]\n@n = next.v1": 2,
		"@n = all.v1\nalso = null\n* = [{\"@n\": \"next.v1\"}]":     1,
	} {
		made = 0
		got, err := r.Resolve(parse(t, "[m]\n"+text), "m")
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"@n = times.v1\nn = 3\n[m.orig]\n@n = next.v1\nfail = true":                             "test.cfg:5: m.orig: next.v1: no more",
		"@n = times.v1\nn = 3\n[m.orig]\n@n = next.v1\nstep = 1":                                "test.cfg:4: m.orig: expected an even number, got a Go value of type int",
		"@n = times.v1\nn = 3\norig = \"x\"":                                                    `test.cfg:4: m.orig: expected an even number, got the string "x"`,
		"@n = times.v1\nn = 300\n[m.orig]\n@n = times.v1\nn = 300\n[m.orig.orig]\n@n = next.v1": "test.cfg:8: m.orig.orig: the config calls more than 65536 functions; make it smaller",
		"@n = all.v1\n* = [4]":               "test.cfg:3: m.*.0: expected an even number, got 4",
		"@n = all.v1":                        "test.cfg:2: m: n -> all.v1 needs at least one positional argument, an even number; add a section [m.*.name]",
		"@n = all.v1\n* = [null]":            "test.cfg:3: m.*.0: expected an even number, got null",
		"@n = one.v1":                        `test.cfg:2: m: n -> one.v1 needs the argument "x", an even number; add a section [m.x]`,
		"@n = one.v1\nx = null":              "test.cfg:3: m.x: expected an even number, got null",
		"@n = reads.v1\norig = 2":            `its Make reads the parameter "orig", which is lazy`,
		"@n = calls.v1\n[m.x]\n@n = next.v1": `its Make reads the parameter "x", which is not declared as lazy`,
	} {
		made = 0
		_, err := r.Resolve(parse(t, "[m]\n"+text), "m")
		require.ErrorContains(t, err, want, text)
	}
	for _, p := range []config.Param{{Name: "x", Lazy: true, Type: config.Int}, {Name: "x", Lazy: true, Variadic: true}, {Name: "x", Lazy: true, Default: 1}} {
		require.ErrorContains(t, r.Register("n", "lazy.v1", config.Func{Params: []config.Param{p}, Make: func(config.Args) (any, error) { return nil, nil }}), "parameter x is lazy")
	}
}
