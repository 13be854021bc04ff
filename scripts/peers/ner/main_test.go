package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// events returns a run of 12 steps. Each of the first 10 has 50 words and takes 1 s.
// The last two have 100 words each, at a rate.
func events(program string, rate, f float64) string {
	var b strings.Builder
	fmt.Fprintln(&b, `{"event":"view","epoch":1}`)
	for step := 1; step <= 10; step++ {
		fmt.Fprintf(&b, `{"event":"step","step":%d,"samples":50,"seconds":%d}`+"\n", step, step)
	}
	for step := 11; step <= 12; step++ {
		fmt.Fprintf(&b, `{"event":"step","step":%d,"samples":100,"seconds":%v}`+"\n", step, 10+float64(step-10)*100/rate)
	}
	fmt.Fprintf(&b, `{"event":"result","seconds":100,"ents_f":%v,"about":"%s 1.0"}`+"\n", f, program)
	return b.String()
}

// files makes a directory with a run of each program in three rounds. The machine was
// slower in the last, so a ratio of medians is not the median of the ratios.
func files(t *testing.T) string {
	dir := t.TempDir()
	for round, rates := range [][2]float64{{800, 200}, {1000, 125}, {400, 160}} {
		for i, program := range []string{"ringtrain", "spacy"} {
			text := events(program, rates[i], .5+float64(round)/8)
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("12-%d-%s.json", round+1, program)), []byte(text), 0o600))
		}
	}
	return dir
}

func TestTable(t *testing.T) {
	var out, errs strings.Builder
	csv := filepath.Join(t.TempDir(), "rounds.csv")
	require.Zero(t, exit([]string{"-csv", csv, "-require", "3.9", "-note", "A note.", files(t)}, &out, &errs), errs.String())
	require.Equal(t, `
### Named entities, 12 steps

Median [minimum-maximum] of the rounds; words/s after the first 10 steps. Above a ratio of 1, ringtrain is faster.

| program | words/s | ringtrain's / its | words per step | ents_f | with |
|---|---|---|---|---|---|
| ringtrain | 800 [400-1000] |  | 100 [100-100] | 0.625 [0.500-0.750] | ringtrain 1.0 |
| spaCy | 160 [125-200] | 4.00 | 100 [100-100] | 0.625 [0.500-0.750] | spacy 1.0 |

A note.
`, out.String())
	lines, err := os.ReadFile(csv)
	require.NoError(t, err)
	require.Contains(t, string(lines), "spacy,3,12,200,1.25,0.75,spacy 1.0\n")
}

func TestMistakes(t *testing.T) {
	damaged := func(name, text string) string {
		dir := files(t)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		return dir
	}
	whole := events("spacy", 100, 1)
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{
		{nil, 2, "usage: ner"},
		{[]string{"-require", "much", t.TempDir()}, 2, "usage: ner"},
		{[]string{t.TempDir()}, 1, "there are no files"},
		{[]string{filepath.Join(t.TempDir(), "missing")}, 1, "missing"},
		{[]string{"-require", "4.1", files(t)}, 1, "ringtrain's speed is 4.00 times that of spaCy, less than 4.1"},
		{[]string{damaged("table.md", "")}, 1, "table.md: its name must have the form STEPS-ROUND-PROGRAM.json"},
		{[]string{damaged("12-1-spacy.json", "no JSON")}, 1, "12-1-spacy.json: invalid character"},
		{[]string{damaged("12-1-spacy.json", "")}, 1, "12-1-spacy.json: after 10 steps, 0 words took 0 s"},
		{[]string{damaged("12-1-spacy.json", strings.Replace(whole, `"step":7`, `"step":8`, 1))}, 1, "12-1-spacy.json: step 8 follows step 6"},
		{[]string{damaged("12-1-spacy.json", strings.Replace(whole, "ents_f", "f", 1))}, 1, "12-1-spacy.json: the result has no ents_f"},
		{[]string{damaged("12-1-spacy.json", strings.Replace(whole, "result", "end", 1))}, 1, "12-1-spacy.json: there is no result"},
		{[]string{damaged("13-1-spacy.json", whole)}, 1, "13-1-spacy.json: there are 12 steps"},
	} {
		var out, errs strings.Builder
		require.Equal(t, c.code, exit(c.args, &out, &errs), "%v: %s", c.args, errs.String())
		require.Contains(t, errs.String(), c.say)
	}
}
