package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/config"
)

// notebook is the config from the Thinc notebook on parallel training with Ray.
const notebook = `
[training]
iterations = 200
batch_size = 128

[evaluation]
batch_size = 256
frequency = 10

[model]
@layers = "relu_relu_softmax.v1"
hidden_width = 128
dropout = 0.2

[optimizer]
@optimizers = "Adam.v1"

[ray]
num_workers = 2
object_store_memory = 3000000000
num_cpus = 2
`

// parse parses text and fails the test on an error.
func parse(t *testing.T, text string, o ...config.Override) *config.Config {
	t.Helper()
	c, err := config.Parse("test.cfg", text, o)
	require.NoError(t, err)
	return c
}

// compact returns the tree on one line, as objects are written in a config.
func compact(t *testing.T, text string, o ...config.Override) string {
	t.Helper()
	return string(parse(t, text, o...).JSON())
}

func TestNotebookConfig(t *testing.T) {
	require.JSONEq(t, `{
		"training": {"iterations": 200, "batch_size": 128},
		"evaluation": {"batch_size": 256, "frequency": 10},
		"model": {"@layers": "relu_relu_softmax.v1", "hidden_width": 128, "dropout": 0.2},
		"optimizer": {"@optimizers": "Adam.v1"},
		"ray": {"num_workers": 2, "object_store_memory": 3000000000, "num_cpus": 2}
	}`, compact(t, notebook))
}

func TestLinesFollowConfigparser(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"both delimiters, the first wins": {"[a]\nx = 1\ny: 2\nu = http://h\nw: a=b", `{"a":{"x":1,"y":2,"u":"http://h","w":"a=b"}}`},
		"keys keep their case":            {"[a]\nX = 1\nx = 2", `{"a":{"X":1,"x":2}}`},
		"comments":                        {"# c\n[a]\n  ; c\nx = 1 # not a comment\n", `{"a":{"x":"1 # not a comment"}}`},
		"continuation":                    {"[a]\nx = [1,\n  2,\n\n  # c\n  3]\ny = one\n  two", `{"a":{"x":[1,2,3],"y":"one\ntwo"}}`},
		"uniform indentation":             {"   [a]\n   x = 1\n   y = 2\n\n   [b]\n   z = 3", `{"a":{"x":1,"y":2},"b":{"z":3}}`},
		"indented header":                 {"[a]\n  [a.b]\n  x = 1", `{"a":{"b":{"x":1}}}`},
		"empty sections":                  {"[components]\n\n[pretraining]", `{"components":{},"pretraining":{}}`},
		"empty value":                     {"[a]\nx =\ny =   ", `{"a":{"x":"","y":""}}`},
		"Windows lines and a BOM":         {"\ufeff[a]\r\nx = \"1\"\r\n", `{"a":{"x":"1"}}`},
		"subsections go after keys":       {"[a.b]\nx = 1\n[a]\ny = 2", `{"a":{"y":2,"b":{"x":1}}}`},
		"positional sections":             {"[m]\n[m.*.two]\nx = 2\n[m.*.one]\nx = 1", `{"m":{"*":{"two":{"x":2},"one":{"x":1}}}}`},
		"positional list":                 {"[m]\n* = [0.05, 0.1]", `{"m":{"*":[0.05,0.1]}}`},
		"an empty DEFAULT":                {"[DEFAULT]\n[a]\nx=1", `{"a":{"x":1}}`},
	} {
		t.Run(name, func(t *testing.T) { require.JSONEq(t, c.want, compact(t, c.text)) })
	}
}

func TestValuesAreJSONOrStrings(t *testing.T) {
	c := parse(t, "[a]\nn = null\nt = true\ni = 3\nf = 1e-3\ng = 0.00000001\nh = 2.0\ns = \"x\"\nbare = some words\nl = [1, \"a\", null]\n"+
		"o = {\"@tokenizers\": \"spacy.Tokenizer.v1\"}\nbroken = [1, 2\npy = True\nlong = 123456789012345678901234567890.0")
	s, ok := c.Section("a")
	require.True(t, ok)
	var got []any
	for _, e := range s.Entries() {
		if _, ok := e.Value.(*config.Section); !ok {
			got = append(got, e.Value)
		}
	}
	require.Equal(t, []any{nil, true, int64(3), 1e-3, 1e-8, 2.0, "x", "some words", []any{int64(1), "a", nil},
		"[1, 2", true, 123456789012345678901234567890.0}, got)
	o, ok := c.Section("a.o")
	require.True(t, ok)
	require.Equal(t, []string{"@tokenizers"}, o.Keys())
	require.Equal(t, "test.cfg:11", o.Pos().String())
}

func TestSingleQuotesWarn(t *testing.T) {
	c := parse(t, "[a]\nx = 'y'\nz = it's")
	require.Len(t, c.Warnings(), 1)
	require.Contains(t, c.Warnings()[0], "test.cfg:2: 'y' is in single quotes")
}

func TestEntriesKnowTheirLines(t *testing.T) {
	c := parse(t, notebook, config.Override{Path: "ray.num_workers", Raw: "4"})
	e, ok := c.Entry("model.dropout")
	require.True(t, ok)
	require.Equal(t, config.Pos{Source: "test.cfg", Line: 13}, e.Pos)
	e, ok = c.Entry("ray.num_workers")
	require.True(t, ok)
	require.Equal(t, "--ray.num_workers", e.Pos.String())
}

func TestTextAndJSONKeepTheOrder(t *testing.T) {
	c := parse(t, "[z]\nb = ${a.x}\na = it costs 5$$\n[z.s]\n[a]\nx = [1.0, {\"k\": \"v\"}]\n[m]\n[m.*.p]\nq = ${z.s}")
	require.Equal(t, `[z]
b = [1.0, {"k": "v"}]
a = "it costs 5$$"

[z.s]

[a]
x = [1.0, {"k": "v"}]

[m]

[m.*]

[m.*.p]
q = {}
`, c.Text())
	require.Equal(t, `{
  "z": {
    "b": [1.0, {"k": "v"}],
    "a": "it costs 5$",
    "s": {}
  },
  "a": {
    "x": [1.0, {"k": "v"}]
  },
  "m": {
    "*": {
      "p": {
        "q": {}
      }
    }
  }
}
`, string(c.JSON()))
	require.Equal(t, c.JSON(), parse(t, c.Text()).JSON())
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.cfg")
	require.NoError(t, os.WriteFile(path, []byte(notebook), 0o600))
	c, err := config.Load(path, nil)
	require.NoError(t, err)
	require.Equal(t, path, c.Name())
	_, found := c.Entry("model.@layers")
	require.True(t, found)

	_, err = config.Load(path+"x", nil)
	var e *config.Error
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, path+"x: cannot read the config")
}
