package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/config"
)

// values lists values of y under [x], below the section in TestValuesEqualConfection, as
// printed by confection 1.3.4.
var values = []struct{ raw, want string }{
	{`[1, ${b.w}, 3]`, `"[1, word, 3]"`},
	{`[1, "${b.w}", 3]`, `[1, "word", 3]`},
	{`[1, ${b.n}, 3]`, `[1, 2, 3]`},
	{`[${b.yes}, ${b.five}]`, `[true, 5]`},
	{`{"k": ${b.w}}`, `"{\"k\": word}"`},
	{`{"k": ${b.n}}`, `{"k": 2}`},
	{`[${b.l}]`, `[[1, 2]]`},
	{`[${b.s}]`, `[{"d": true}]`},
	{`{"k": ${b.s}}`, `{"k": {"d": true}}`},
	{`"is ${b.o}"`, `"is {\"k\": 1}"`},
	{`is ${b.l}`, `"is [1, 2]"`},
	{`"is ${b.words}"`, `"is [\"a\", \"b\"]"`},
	{`"${b.f}"`, `"1000000.0"`},
	{`[1e6, 1e16, 1e-4, 1e-5]`, `[1000000.0, 1e+16, 0.0001, 1e-05]`},
	{`18446744073709551615`, `18446744073709551615`},
	{`-9223372036854775808`, `-9223372036854775808`},
	{`True`, `true`},
	{`False`, `false`},
	{`None`, `null`},
	{`[True]`, `"[True]"`},
	{`"${b.five}"`, `"5"`},
	{`${b.five}`, `"5"`},
	{`1${b.n}`, `12`},
	{`-${b.five}.5`, `-5.5`},
	{`x = ${b.w}`, `"x = word"`},
}

func TestValuesEqualConfection(t *testing.T) {
	const b = "[b]\nn = 2\nw = \"word\"\nyes = \"true\"\nfive = \"5\"\nf = 1e6\nl = [1, 2]\nwords = [\"a\", \"b\"]\no = {\"k\": 1}\n[b.s]\nd = true\n[x]\n"
	for _, c := range values {
		_, got, _ := strings.Cut(parse(t, b+"y = "+c.raw).Text(), "[x]\n")
		require.Equal(t, "y = "+c.want+"\n", got, c.raw)
	}
}

// Whole texts parse as in confection 1.3.4.
func TestTextsEqualConfection(t *testing.T) {
	for text, want := range map[string]string{
		"[training] # basics\nx = 1":                         `{"training": {"x": 1}}`,
		"[training] basics\nx = 1":                           `{"training": {"x": 1}}`,
		"[training]x = 2\ny = 1":                             `{"training": {"y": 1}}`,
		"[a]\nx = ${x}\n[x]\nk = 1":                          `{"a": {"x": {"k": 1}}, "x": {"k": 1}}`,
		"[a]\nx = False\ny = \"is ${x}\"":                    `{"a": {"x": false, "y": "is False"}}`,
		"[a]\nx = False\nw = ${x}\nv = \"${w}\"\nz = [${w}]": `{"a": {"x": false, "w": false, "v": "False", "z": "[False]"}}`,
	} {
		require.JSONEq(t, want, compact(t, text), text)
	}
}

// We are stricter in these cases. confection 1.3.4 also rejects the first four, and reads
// the others in ways that no user intends.
func TestStricterThanConfection(t *testing.T) {
	for text, want := range map[string]string{
		"[a]\nx = \"${b}\"\n[b]":                      "test.cfg:2: x uses the section variable ${b} inside a string",
		"[a]\nx = ${b}\ny = \"is ${x}\"\n[b]":         "test.cfg:3: y uses the section variable ${x} inside a string",
		"[a]\nx = [${b}]\ny = \"is ${x}\"\n[b]":       "test.cfg:3: y uses the section variable ${x}",
		"[a]\nx = {\"k\": ${b}}\ny = is ${x}\n[b]":    "test.cfg:3: y uses the section variable ${x}",
		"[training] # see [1]\nx = 1":                 "test.cfg:1: [training] # see [1]: the text after the section header contains a bracket; delete it",
		"[ training ]\nx = 1":                         "test.cfg:1: [ training ] is not a section name",
		"[a]\nx = {\"k\": 1, \"k\": 2}":               `the object has "k" twice`,
		"[a]\nx = 18446744073709551616":               "test.cfg:2: x: the whole number 18446744073709551616 does not fit into 64 bits",
		"[a]\nx = [-9223372036854775809]":             "does not fit into 64 bits; write it in quotes, or with a decimal point",
		"[a]\nx = 1e400":                              "test.cfg:2: x: the number 1e400 is too large",
		"[a]\nx = \"\\ud800\"":                        "contains an unpaired surrogate",
		"[a]\nx = {\"\\udc00\": 1}":                   "contains an unpaired surrogate",
		"[a]\nx = 18446744073709551615\ny = [${a.x":   "test.cfg:3: y = [${a.x: a dollar sign starts a reference",
		"[a]\nx = 1\n[b] # one\ny = 2\n[a]   # again": "test.cfg:5: section [a] is already defined",
	} {
		_, err := config.Parse("test.cfg", text, nil)
		require.ErrorContains(t, err, want, text)
	}
	for text, want := range map[string]string{ // numbers in confection, but not JSON
		"[a]\nx = NaN": `{"a": {"x": "NaN"}}`, "[a]\nx = [-Infinity]": `{"a": {"x": "[-Infinity]"}}`,
		// We escape quotes in an inserted value; confection 1.3.4 does not.
		"[a]\nq = \"a\\\"b\"\nx = \"say ${q}\"": `{"a": {"q": "a\"b", "x": "say a\"b"}}`,
		"[a]\nl = [\"w\"]\nx = [${l}]":          `{"a": {"l": ["w"], "x": [["w"]]}}`,
		"[a]\nn = 1\nx = [\"${n}\", \"${n}\"]":  `{"a": {"n": 1, "x": ["1", "1"]}}`,
		"[a]\nx = \"\\ud83d\\ude00 \\ufffd\"":   `{"a": {"x": "😀 �"}}`,
		"[a]\nx = \"\\ufffd \\ud800\"":          `{"a": {"x": "� �"}}`, // not detected
	} {
		require.JSONEq(t, want, compact(t, text), text)
	}
}

func TestNumbersOf64Bits(t *testing.T) {
	c := parse(t, "[a]\nx = 18446744073709551615")
	e, _ := c.Entry("a.x")
	require.Equal(t, uint64(1<<64-1), e.Value)
	s, err := c.String("a.x", "")
	require.NoError(t, err)
	require.Equal(t, "18446744073709551615", s)
	_, err = c.Int("a.x", 0)
	require.ErrorContains(t, err, "test.cfg:2: a.x: expected a whole number of at most 9223372036854775807, got 18446744073709551615")
}

func TestWarnings(t *testing.T) {
	c := parse(t, "[a] x = 1\nv = \"w\"\ny = [1, ${v}]\n[b] ; fine\nz = [no list]\n[c]# fine")
	require.Equal(t, []string{
		"test.cfg:1: [a] x = 1: the text after the section header is ignored; write it on a line of its own",
		`test.cfg:3: [1, ${v}] is a string, not a list or an object; put quotes around references to strings, as in ["${section.key}"]`,
	}, c.Warnings())
}

// A quadratic version took 19 s for a million pairs of dollar signs, and over a
// minute for these.
func TestDollarsTakeLinearTime(t *testing.T) {
	const pairs = 2_000_000
	c := parse(t, "[a]\nx = "+strings.Repeat("$$", pairs))
	s, err := c.String("a.x", "")
	require.NoError(t, err)
	require.Len(t, s, pairs)
}
