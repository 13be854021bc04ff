package config_test

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/config"
)

func TestParseErrors(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"call at the top":         {"[@layers]\nx = 1", "test.cfg:1: the top level of a config cannot be a reference to a registered function"},
		"no parent":               {"[modle]\n[model.layers]", `test.cfg:2: section [model.layers] has no parent: section [model] is not defined; did you mean "modle"?`},
		"no similar parent":       {"[x]\n[model.layers]", "section [model] is not defined; add that line above this one"},
		"no parent of star":       {"[a.*.b]", "test.cfg:1: section [a.*] has no parent: section [a] is not defined"},
		"key and section":         {"[a]\nb = null\n[a.b]", `test.cfg:3: conflicting values: section [a.b] is also the key "b" at line 2`},
		"star and section":        {"[a]\n* = [1]\n[a.*.x]", `conflicting values: section [a.*] is also the key "*"`},
		"loose key":               {"x = 1\n[a]", `test.cfg:1: key "x" is not part of a section`},
		"key in DEFAULT":          {"[DEFAULT]\nx = 1", `test.cfg:2: key "x" is not part of a section`},
		"no delimiter":            {"[a]\nb c", `test.cfg:2: "b c" is neither a [section] nor key = value`},
		"no key":                  {"[a]\n= 3", "test.cfg:2: a value without a key"},
		"section twice":           {"[a]\n[b]\n[a]", "test.cfg:3: section [a] is already defined at line 1"},
		"key twice":               {"[a]\nx = 1\nx = 2", `test.cfg:3: key "x" of section [a] is already set at line 2`},
		"header not closed":       {"[a", "test.cfg:1: the section header [a is not closed"},
		"empty section name":      {"[]", "test.cfg:1: [] is not a section name"},
		"empty part":              {"[a]\n[a..b]", "test.cfg:2: [a..b] is not a section name"},
		"object with a key twice": {"[a]\nx = {\"k\": 1, \"k\": 2}", `test.cfg:2: x: the object has "k" twice`},
		"huge number":             {"[a]\nx = 1e999", "test.cfg:2: x: the number 1e999 is too large"},
		"too deep":                {"[a]\n[a" + strings.Repeat(".*", 40) + "]", "test.cfg:2: the section is nested more than 32 levels deep"},
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

// A message is one short line that a terminal can print, whatever the config contains.
func TestErrorsEscapeAndClip(t *testing.T) {
	const escape = "\x1b[2J\x07\u202e\u009b"
	long := escape + strings.Repeat("x", 100_000)
	quoted := `"` + strings.Repeat("y", 100_000) + `"`
	for name, c := range map[string]struct{ text, path, raw string }{
		"no delimiter":      {text: "[a]\n" + long},
		"loose key":         {text: long + " = 1"},
		"key twice":         {text: "[a]\n" + long + " = 1\n" + long + " = 2"},
		"not closed":        {text: "[" + long},
		"bracket behind":    {text: "[a] " + long + "]"},
		"header":            {text: "[." + long + "]"},
		"section twice":     {text: "[" + strings.TrimPrefix(long, "\x1b[") + "]\n[" + strings.TrimPrefix(long, "\x1b[") + "]"},
		"no parent":         {text: "[" + strings.TrimPrefix(long, "\x1b[") + ".b]"},
		"promise":           {text: "[@" + strings.TrimPrefix(long, "\x1b[") + "]"},
		"dollar":            {text: "[a]\nx = $" + long},
		"reference":         {text: "[a]\nx = ${" + long + "}"},
		"reference by":      {text: "[a]\n" + long + " = ${b}"},
		"cycle":             {text: "[a]\n" + long + " = ${" + long + "}"},
		"number":            {text: "[a]\n" + long + " = 1e" + strings.Repeat("9", 100_000)},
		"whole number":      {text: "[a]\nx = " + strings.Repeat("9", 100_000)},
		"twice in object":   {text: "[a]\nx = {" + quoted + ": 1, " + quoted + ": 2}"},
		"surrogate":         {text: "[a]\nx = " + quoted[:1000] + `\ud800"`},
		"override":          {"[a]\nx = 1", long, "1"},
		"override, section": {"[a]\nx = 1", long + ".x", "1"},
		"override, key":     {"[a]\nx = 1", "a.=" + long, "1"},
		"override, dollar":  {"[a]\nx = 1", "a." + long, "$" + long},
		"override, UTF-8":   {"[a]\nx = 1", "a.\xff" + long, "1"},
		"function":          {text: "[a]\n@layers = \"" + strings.Repeat("f", 100_000) + "\""},
		"registry":          {text: "[a]\n@" + long + " = 1"},
		"argument":          {text: "[a]\n@layers = \"N.v1\"\n" + long + " = 1"},
		"value":             {text: "[a]\n@layers = \"N.v1\"\nn = " + long},
		"its own":           {text: "[a]\n@layers = \"N.v1\"\ns = " + long},
		"wrapped":           {text: "[a]\n@layers = \"N.v1\""},
	} {
		t.Run(name, func(t *testing.T) {
			var overrides []config.Override
			if c.path != "" {
				overrides = []config.Override{{Path: c.path, Raw: c.raw}}
			}
			err := load(c.text, overrides)
			require.Error(t, err)
			require.Less(t, len(err.Error()), 1000)
			for _, r := range err.Error() {
				require.True(t, unicode.IsPrint(r), "%q", err.Error())
			}
		})
	}
	c := parse(t, "[a]\nx = '"+long+"'\n[b] "+strings.ReplaceAll(long, "[", "(")+"\ny = 1")
	require.Len(t, c.Warnings(), 2)
	for _, w := range c.Warnings() {
		require.Less(t, len(w), 1000)
		require.NotContains(t, w, "\x1b")
	}
	_, _, err := config.SplitOverrides([]string{"--" + long + "."}, nil)
	require.ErrorContains(t, err, `--\x1b[2J\a\u202e\u009bxxx`)
	require.Less(t, len(err.Error()), 1000)
	require.Equal(t, `--a.\x1b[2J`, config.Override{Path: "a.\x1b[2J"}.String())
}

// load parses and resolves a text and returns the first error.
func load(text string, overrides []config.Override) error {
	c, err := config.Parse("test.cfg", text, overrides)
	if err != nil {
		return err
	}
	r := config.NewRegistry()
	f := config.Func{Params: []config.Param{{Name: "n", Type: config.Int, Default: 1}, {Name: "s", Type: config.String}},
		Make: func(a config.Args) (any, error) {
			if s := a.String("s"); s != "" {
				return nil, a.Errorf("s", "it is %s", s)
			}
			return nil, errors.New("an escape \x1b[2J from another package")
		}}
	if err := r.Register("layers", "N.v1", f); err != nil {
		return err
	}
	_, err = r.Resolve(c, "")
	return err
}

func TestOverrideErrors(t *testing.T) {
	const text = "[training]\nmax_steps = 1\n[training.batcher]\nsize = 2\n[a]\no = {\"k\": 1}"
	for name, c := range map[string]struct{ path, want string }{
		"no dot":                {"max_steps", "--max_steps: not a section value that can be overridden; write section.key"},
		"no key":                {"training.", "--training.: not a section value"},
		"unknown section":       {"trainign.max_steps", `--trainign.max_steps: test.cfg has no section [trainign]; did you mean "training"?`},
		"missing section":       {"evaluation.frequency", "test.cfg has no section [evaluation]: add the line [evaluation] to set its keys here"},
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
