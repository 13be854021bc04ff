package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/trainer/config"
)

// FuzzParse checks that a text gives either a one-line error or a tree whose Text parses
// to the same tree.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		notebook, "", "[a]\nx = ${b}\n[b]\ny = [${a.z}, \"$$\"]\n", "[a]\n[a.*.b]\n* = {\"k.l]\": -0.0}\n",
		"[a]\nx = 'y'\n  [z]\n", "[DEFAULT]\n[a]\nx: =\n", "[a]\nx y#[=1\n", "[a]\nx=\"\\u2028\\ud800\"", "[a]\nk = \"${a.k}", "[a]\nx = -0",
		"[a]\nx = ${a.b}\n[a.b]\n[a.b.c]\ny=1e400", "[a]\n\vx\u0085=1\n", "[a.b]\n[a]\n@x=1",
		"[a] # c\nx = True\ny = [${x}, \"${x}\"]", "[a]\no = {\"k\": 18446744073709551615}\nx = \"is ${a.o}\"\ny = [1, ${x}]", "[x]\nx = ${x}\n$$$",
	} {
		f.Add(seed, "a.x", "1")
	}
	f.Fuzz(func(t *testing.T, text, path, raw string) {
		for _, o := range [][]config.Override{nil, {{Path: path, Raw: raw}}} {
			c, err := config.Parse("f.cfg", text, o)
			if err != nil {
				require.ErrorAs(t, err, new(*config.Error))
				continue
			}
			again, err := config.Parse("f.cfg", c.Text(), nil)
			require.NoError(t, err, c.Text())
			require.Equal(t, string(c.JSON()), string(again.JSON()))
			require.Equal(t, c.Text(), again.Text())
			var any any
			require.NoError(t, jsonUnmarshal(string(c.JSON()), &any))
			_, err = config.NewRegistry().Resolve(c, "")
			if err != nil {
				require.ErrorAs(t, err, new(*config.Error))
			}
		}
	})
}

// Any tree of strings, numbers and lists survives writing and reading.
func TestStringsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.String().Draw(t, "value")
		c, err := config.Parse("f.cfg", "[a]\nx = 0\n[b]\ny = ${a.x}\n", []config.Override{{Path: "a.x", Raw: string(quote(value))}})
		require.NoError(t, err)
		again, err := config.Parse("f.cfg", c.Text(), nil)
		require.NoError(t, err)
		got, err := again.String("b.y", "")
		require.NoError(t, err)
		require.Equal(t, value, got)
	})
}
