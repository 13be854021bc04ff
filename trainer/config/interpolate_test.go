package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/config"
)

func TestInterpolation(t *testing.T) {
	const b = "[b]\none = 1\nword = \"string\"\nten = 10\nlist = [\"hello\", \"world\"]\nquote = \"a\\\"b\"\n[b.c]\nd = true\n[x]\n"
	for name, c := range map[string]struct{ value, want string }{
		"a whole value keeps its type":    {"${b.one}", `1`},
		"also with a colon":               {"${b:one}", `1`},
		"a string stays a string":         {"${b.word}", `"string"`},
		"a list":                          {"${b.list}", `["hello","world"]`},
		"nested section":                  {"${b.c.d}", `true`},
		"nested section, colons":          {"${b:c:d}", `true`},
		"a section":                       {"${b.c}", `{"d":true}`},
		"in a string":                     {`"hello ${b.one}"`, `"hello 1"`},
		"alone in a string":               {`"${b.one}"`, `"1"`},
		"two in a string":                 {`"${b.word}/${b.ten}"`, `"string/10"`},
		"two in bare text":                {`${b.word}/${b.ten}`, `"string/10"`},
		"bare text that becomes a number": {`-${b.ten}.5`, `-10.5`},
		"a list in a string":              {`"result: ${b.list}"`, `"result: [\"hello\", \"world\"]"`},
		"in a list":                       {`[${b.one}, "hello ${b.one}"]`, `[1,"hello 1"]`},
		"a string in a list":              {`["${b.word}"]`, `["string"]`},
		"a section in a list":             {`[${b.c}, 2]`, `[{"d":true},2]`},
		"in an object":                    {`{"k": ${b.c}, "l": "${b.ten}"}`, `{"k":{"d":true},"l":"10"}`},
		"quotes are escaped":              {`"say ${b.quote}"`, `"say a\"b"`},
		"after an escaped quote":          {`"\"${b.one}\""`, `"\"1\""`},
		"dollars":                         {`$$${b.one} $${b.one}`, `"$1 ${b.one}"`},
		"a dollar in JSON":                {`["$$"]`, `["$"]`},
		"brackets that are not JSON":      {`[${b.word}] and so on`, `"[string] and so on"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := compact(t, b+"y = "+c.value)
			var tree struct{ X struct{ Y any } }
			require.NoError(t, jsonUnmarshal(got, &tree))
			require.JSONEq(t, c.want, jsonMarshal(t, tree.X.Y))
		})
	}
}

func TestReferenceWithoutSection(t *testing.T) {
	require.JSONEq(t, `{"a":{"x":1,"y":1,"z":{"q":2}},"b":{"q":2},"x":{}}`, compact(t, "[a]\nx = 1\ny = ${x}\nz = ${b}\n[b]\nq = 2\n[x]"))
}

func TestReferencesFollowOverrides(t *testing.T) {
	got := compact(t, "[paths]\ntrain = \"a\"\n[corpus]\npath = ${paths.train}", config.Override{Path: "paths.train", Raw: "b"})
	require.JSONEq(t, `{"paths":{"train":"b"},"corpus":{"path":"b"}}`, got)
}

func TestReferenceToAReferencedSection(t *testing.T) {
	text := "[a]\nx = ${b}\n[a.s]\ny = ${x.z}\n[b]\nz = 1\n"
	_, err := config.Parse("test.cfg", text, nil)
	require.ErrorContains(t, err, "test.cfg:4: y refers to ${x.z}, which is neither a key nor a section")
}

func TestReferenceErrors(t *testing.T) {
	chain := "[a]\nk0 = 1\n"
	for i := range 11 {
		chain += "k" + string(rune('b'+i)) + " = ${k" + map[bool]string{true: "0", false: string(rune('a' + i))}[i == 0] + "}\n"
	}
	var bomb strings.Builder
	bomb.WriteString("[a]\nk0 = \"" + strings.Repeat("x", 1000) + "\"\n")
	for i := 1; i < 9; i++ {
		ref := "${k" + string(rune('0'+i-1)) + "}"
		bomb.WriteString("k" + string(rune('0'+i)) + " = \"" + strings.Repeat(ref, 10) + "\"\n")
	}
	for name, c := range map[string]struct{ text, want string }{
		"missing key":        {"[a]\nbatch = 1\nx = ${a.bathc}", `test.cfg:3: x refers to ${a.bathc}, which is neither a key nor a section; did you mean "a.batch"?`},
		"missing alone":      {"[b]\nbar = ${foo}", "test.cfg:2: bar refers to ${foo}"},
		"into an object":     {"[a]\no = {\"k\": 1}\nx = ${a.o.k}", "test.cfg:3: x refers to ${a.o.k}"},
		"a lone dollar":      {"[a]\nx = $5", "test.cfg:2: x = $5: a dollar sign starts a reference; write ${section.key}, or $$"},
		"not closed":         {"[a]\nx = ${a", "test.cfg:2:"},
		"empty":              {"[a]\nx = ${}", "test.cfg:2:"},
		"itself":             {"[a]\nx = ${a.x}", "test.cfg:2: x refers back to itself: a.x -> ${a.x}"},
		"a cycle":            {"[a]\nx = ${b.y}\n[b]\ny = ${a.x}", "test.cfg:4: y refers back to itself: a.x -> b.y -> ${a.x}"},
		"its own section":    {"[a]\n[a.b]\nx = ${a}", "test.cfg:3: x refers back to itself"},
		"section in string":  {"[a]\nx = \"is ${b}\"\n[b]", "test.cfg:2: x uses the section variable ${b} inside a string"},
		"section in text":    {"[a]\nx = is ${b}\n[b]", "test.cfg:2: x uses the section variable ${b} inside a string"},
		"section, bad JSON":  {"[a]\nx = [${b}\n[b]", "test.cfg:2: x uses the section variable ${b} inside a string"},
		"chain too long":     {chain, "is longer than 10"},
		"too large in total": {"[a]\nx = " + strings.Repeat("y", 1<<20) + "\n[b]" + manyCopies(20), "references expand to too much text"},
		"result too large":   {bomb.String(), "references expand to too much text: a.k4 is longer than 4 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("test.cfg", c.text, nil)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// The limit on chains does not depend on which end is evaluated first.
func TestChainLimitIsSymmetric(t *testing.T) {
	for links, ok := range map[int]bool{10: true, 11: false} {
		forward, backward := "[a]\nk0 = 1\n", ""
		for i := 1; i <= links; i++ {
			line := "k" + string(rune('a'+i)) + " = ${k" + string(rune('a'+i-1)) + "}\n"
			if i == 1 {
				line = "kb = ${k0}\n"
			}
			forward += line
			backward = line + backward
		}
		for _, text := range []string{forward, "[a]\n" + backward + "k0 = 1\n"} {
			_, err := config.Parse("test.cfg", text, nil)
			require.Equal(t, ok, err == nil, "%d links: %v", links, err)
		}
	}
}

// manyCopies returns n keys that each refer to section a.
func manyCopies(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "\nk%d = ${a}", i)
	}
	return b.String()
}
