package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/config"
)

func TestParseErrors(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"promise at the top":      {"[@layers]\nx = 1", "test.cfg:1: the top level of a config cannot be a reference to a registered function"},
		"no parent":               {"[modle]\n[model.layers]", `test.cfg:2: section [model.layers] has no parent: section [model] is not defined; did you mean "modle"?`},
		"no parent, no idea":      {"[x]\n[model.layers]", "section [model] is not defined; write that line above it"},
		"no parent of star":       {"[a.*.b]", "test.cfg:1: section [a.*] has no parent: section [a] is not defined"},
		"key and section":         {"[a]\nb = null\n[a.b]", `test.cfg:3: conflicting values: section [a.b] is also the key "b" at line 2`},
		"star and section":        {"[a]\n* = [1]\n[a.*.x]", `conflicting values: section [a.*] is also the key "*"`},
		"loose key":               {"x = 1\n[a]", `test.cfg:1: key "x" is not part of a section`},
		"key in DEFAULT":          {"[DEFAULT]\nx = 1", `test.cfg:2: key "x" is not part of a section`},
		"no delimiter":            {"[a]\nb c", `test.cfg:2: "b c" is neither a [section] nor key = value`},
		"no key":                  {"[a]\n= 3", "test.cfg:2: a value without a key"},
		"section twice":           {"[a]\n[b]\n[a]", "test.cfg:3: section [a] is there already, at line 1"},
		"key twice":               {"[a]\nx = 1\nx = 2", `test.cfg:3: key "x" of section [a] is there already, at line 2`},
		"header not closed":       {"[a", "test.cfg:1: the section header [a is not closed"},
		"text after a header":     {"[a] b", "test.cfg:1:"},
		"empty section name":      {"[]", "test.cfg:1: [] is not a section name"},
		"empty part":              {"[a]\n[a..b]", "test.cfg:2: [a..b] is not a section name"},
		"object with a key twice": {"[a]\nx = {\"k\": 1, \"k\": 2}", `test.cfg:2: x: the object has "k" twice`},
		"endless number":          {"[a]\nx = 1e999", "test.cfg:2: x: the number 1e999 is too large"},
		"too deep":                {"[a]\n[a" + strings.Repeat(".*", 40) + "]", "test.cfg:2: the section is nested deeper than 32"},
		"not text":                {"[a]\nx = \xff", "test.cfg: not UTF-8 text"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("test.cfg", c.text, nil)
			require.ErrorContains(t, err, c.want)
			var e *config.Error
			require.ErrorAs(t, err, &e)
			require.NotContains(t, err.Error(), "\n", "one line")
		})
	}
}

func TestOverrideErrors(t *testing.T) {
	const text = "[training]\nmax_steps = 1\n[training.batcher]\nsize = 2\n[a]\no = {\"k\": 1}"
	for name, c := range map[string]struct{ path, want string }{
		"no dot":                {"max_steps", "--max_steps: not a section value that can be overridden; write section.key"},
		"no key":                {"training.", "--training.: not a section value"},
		"unknown section":       {"trainign.max_steps", `--trainign.max_steps: not a value that can be overridden: test.cfg has no section [trainign]; did you mean "training"?`},
		"a section":             {"training.batcher", "--training.batcher: not a value that can be overridden: [training.batcher] is a section"},
		"member of an object":   {"a.o.k", "test.cfg has no section [a.o]"},
		"a key no file can set": {"a.x:y", "not a section value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("test.cfg", text, []config.Override{{Path: c.path, Raw: "1"}})
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := config.Parse("test.cfg", text, []config.Override{{Path: "a.x", Raw: "$5"}})
	require.ErrorContains(t, err, "--a.x: x = $5: a dollar sign")
}
