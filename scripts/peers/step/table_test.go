package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// said returns one file: the times of a program in a round.
func said(model string, round int, program string, us float64) (name, text string) {
	return fmt.Sprintf("%s-%d-%s.json", model, round, program),
		fmt.Sprintf(`{"model": %q, "median_us": %v, "least_us": 1, "steps": 300, "first_loss": 2.3, "last_loss": 0.5, "about": "%s 1.0"}`, model, us, program)
}

// writeFiles makes a directory of files from names and texts in turn.
func writeFiles(t *testing.T, files ...string) string {
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0o600))
	}
	return dir
}

// threeRounds has two models. The machine was twice as slow in the last round,
// so a ratio of medians is not the median ratio.
func threeRounds(t *testing.T) string {
	var files []string
	for _, f := range []struct {
		round                        int
		ours, blas, debian, gorgonia float64
	}{
		{1, 500, 2500, 1000, 5000},
		{3, 400, 2000, 600, 6000},
		{2, 1000, 5000, 900, 9000},
	} {
		for _, model := range []string{"convnet", "mlp"} {
			for program, us := range map[string]float64{"gorgonia": f.gorgonia, ours: f.ours, "debian": f.debian, "ringtrain-openblas": f.blas} {
				name, text := said(model, f.round, program, us)
				files = append(files, name, text)
			}
		}
	}
	return writeFiles(t, files...)
}

func TestTable(t *testing.T) {
	var out, errs bytes.Buffer
	csv := filepath.Join(t.TempDir(), "rounds.csv")
	require.Equal(t, 0, run([]string{"table", "-csv", csv, "-note", "Not measured: PyPI.", threeRounds(t)}, &out, &errs), errs.String())
	require.Equal(t, `
### One training step, batch 128, one core

Microseconds: median [minimum-maximum] of 3 rounds, each the median of at least 300 steps. Above a ratio of 1, ringtrain is faster.

| model | program | us per step | / ringtrain | / ringtrain, OpenBLAS | loss, first | last |
|---|---|---|---|---|---|---|
| mlp | ringtrain | 500 [400-1000] |  |  | 2.30 | 0.50 |
| mlp | ringtrain, OpenBLAS | 2500 [2000-5000] | 5.00 |  | 2.30 | 0.50 |
| mlp | PyTorch, Debian | 900 [600-1000] | 1.50 | 0.30 | 2.30 | 0.50 |
| mlp | gorgonia | 6000 [5000-9000] | 10.00 | 2.00 | 2.30 | 0.50 |
| convnet | ringtrain | 500 [400-1000] |  |  | 2.30 | 0.50 |
| convnet | ringtrain, OpenBLAS | 2500 [2000-5000] | 5.00 |  | 2.30 | 0.50 |
| convnet | PyTorch, Debian | 900 [600-1000] | 1.50 | 0.30 | 2.30 | 0.50 |
| convnet | gorgonia | 6000 [5000-9000] | 10.00 | 2.00 | 2.30 | 0.50 |

The libraries that multiplied matrices:

- ringtrain: ringtrain 1.0
- ringtrain, OpenBLAS: ringtrain-openblas 1.0
- PyTorch, Debian: debian 1.0
- gorgonia: gorgonia 1.0

Not measured: PyPI.
`, out.String())

	text, err := os.ReadFile(csv)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, lines, 1+3*4*2)
	require.Equal(t, "mlp,1,ringtrain,500,1,300,2.3,0.5,ringtrain 1.0", lines[1])
	require.Equal(t, "convnet,3,gorgonia,6000,1,300,2.3,0.5,gorgonia 1.0", lines[24])
}

func TestRequire(t *testing.T) {
	dir := threeRounds(t)
	for list, want := range map[string]string{
		"":                        "",
		"1.5":                     "",
		"debian=1.5,gorgonia=10,": "",
		"mlp:gorgonia/ringtrain-openblas=2,convnet:1": "",
		"1.51":                            "mlp: PyTorch, Debian / ringtrain is 1.50, but must be at least 1.51\nconvnet: PyTorch, Debian / ringtrain is 1.50, but must be at least 1.51",
		"mlp:debian=2":                    "mlp: PyTorch, Debian / ringtrain is 1.50, but must be at least 2.00",
		"convnet:gorgonia=11":             "convnet: gorgonia / ringtrain is 10.00, but must be at least 11.00",
		"gorgonia/ringtrain-openblas=2.1": "gorgonia / ringtrain, OpenBLAS is 2.00, but must be at least 2.10",
		"pypi=1":                          "PyTorch, PyPI / ringtrain was not measured, but must be at least 1.00",
	} {
		t.Run(list, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run([]string{"table", "-require", list, dir}, &out, &errs)
			require.Contains(t, out.String(), "### One training step", "the table is still written")
			require.Equal(t, want != "", code == 1)
			require.Contains(t, errs.String(), want)
		})
	}
}

func TestWhatDoesNotFit(t *testing.T) {
	name, good := said("mlp", 1, ours, 1)
	peer, peers := said("mlp", 1, "debian", 1)
	conv, convs := said("convnet", 2, ours, 1)
	for want, files := range map[string][]string{
		"there are no files":                              {},
		"notes.txt: its name must have the form":          {name, good, "notes.txt", ""},
		"mlp-1-debian.json: unexpected end":               {name, good, peer, "{"},
		`mlp-1-ringtrain.json: its model is "con`:         {name, convs},
		"300 steps took 0 us each":                        {name, strings.Replace(good, `"median_us": 1`, `"median_us": 0`, 1)},
		"the loss went from 2.3 to 2.4, but it must fall": {name, strings.Replace(good, "0.5", "2.4", 1)},
		"the loss of debian is 0.760 and that of ring":    {name, good, peer, strings.Replace(peers, "0.5", "0.76", 1)},
		"the loss of debian is 0.320 and that of ring":    {name, good, peer, strings.Replace(peers, "0.5", "0.32", 1)},
		"the loss of gorgonia is 0.510 and that of ri":    {conv, convs, "convnet-2-gorgonia.json", strings.Replace(convs, "0.5", "0.51", 1)},
		"mlp: ringtrain is missing":                       {peer, peers},
		"ringtrain has the rounds [1], debian [2]":        {name, good, "mlp-2-debian.json", peers},
		"mlp has the rounds [1], convnet [2]":             {name, good, conv, convs},
	} {
		t.Run(want, func(t *testing.T) {
			var out, errs bytes.Buffer
			require.Equal(t, 1, run([]string{"table", writeFiles(t, files...)}, &out, &errs))
			require.Contains(t, errs.String(), want)
			require.Empty(t, out.String())
		})
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{}, {"nonsense"}, {"batches"}, {"ringtrain", "mlp"}, {"tensorflow", "mlp", "f"}, {"ringtrain", "transformer", "f"},
		{"ringtrain", "mlp", "f", "0"}, {"table"}, {"table", "-nonsense", "a"}, {"table", "-require", "mlp:debian", "a"},
		{"table", "-require", "gpt:debian=1", "a"}, {"table", "-require", "ringtrain=1", "a"}, {"table", "-require", "debian/pypi=1", "a"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, 2, run(args, &out, &errs), args)
		require.NotEmpty(t, errs.String())
	}
}
