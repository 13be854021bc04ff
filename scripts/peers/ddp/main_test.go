package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// files makes a directory with a run of each program in three rounds. The machine was
// slower in the last, so a ratio of medians is not the median of the ratios.
func files(t *testing.T) string {
	dir := t.TempDir()
	for round, rates := range [][2]float64{{90_000, 30_000}, {100_000, 25_000}, {40_000, 20_000}} {
		for i, program := range []string{"ringtrain", "pypi"} {
			text := fmt.Sprintf(`{"event":"result","workers":2,"steps":1000,"samples_per_second":%v,"loss":0.0%d1,"about":"%s 1.0"}`, rates[i], round+1, program)
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("2-%d-%s.json", round+1, program)), []byte(text), 0o600))
		}
	}
	return dir
}

func TestTable(t *testing.T) {
	var out, errs strings.Builder
	csv := filepath.Join(t.TempDir(), "rounds.csv")
	require.Zero(t, exit([]string{"-csv", csv, "-require", "2.5", "-note", "A note.", files(t)}, &out, &errs), errs.String())
	require.Equal(t, `
### Data-parallel training of the perceptron, batch 128 per worker, 1000 steps

Samples/s of all workers: median [minimum-maximum] of the rounds. Above a ratio of 1, ringtrain is faster.

| workers | program | samples/s | ringtrain's / its | test loss | with |
|---|---|---|---|---|---|
| 2 | ringtrain | 90000 [40000-100000] |  | 0.021 | ringtrain 1.0 |
| 2 | PyTorch DDP | 25000 [20000-30000] | 3.00 | 0.021 | pypi 1.0 |

A note.
`, out.String())
	lines, err := os.ReadFile(csv)
	require.NoError(t, err)
	require.Contains(t, string(lines), "2,3,pypi,1000,20000,0.031,pypi 1.0\n")
}

func TestMistakes(t *testing.T) {
	damaged := func(name, text string) string {
		dir := files(t)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		return dir
	}
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{
		{nil, 2, "usage: ddp"},
		{[]string{"-require", "much", t.TempDir()}, 2, "usage: ddp"},
		{[]string{t.TempDir()}, 1, "there are no files"},
		{[]string{filepath.Join(t.TempDir(), "missing")}, 1, "missing"},
		{[]string{"-require", "3.1", files(t)}, 1, "2 workers: ringtrain's speed is 3.00 times that of PyTorch DDP, less than 3.1"},
		{[]string{damaged("table.md", "")}, 1, "table.md: its name must have the form WORKERS-ROUND-PROGRAM.json"},
		{[]string{damaged("2-1-pypi.json", "no JSON")}, 1, "2-1-pypi.json: invalid character"},
		{[]string{damaged("2-1-pypi.json", `{"workers":2,"steps":1000}`)}, 1, "2-1-pypi.json: 2 workers made 1000 steps with 0 samples/s"},
		{[]string{damaged("4-1-pypi.json", `{"workers":2,"steps":1000,"samples_per_second":1}`)}, 1, "4-1-pypi.json: 2 workers made 1000 steps with 1 samples/s"},
	} {
		var out, errs strings.Builder
		require.Equal(t, c.code, exit(c.args, &out, &errs), "%v: %s", c.args, errs.String())
		require.Contains(t, errs.String(), c.say)
	}
}
