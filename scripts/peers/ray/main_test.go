package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// files makes a directory with a run of each program and training in three rounds. The
// machine was slower in the last, so a ratio of medians is not the median of the ratios.
func files(t *testing.T) string {
	dir := t.TempDir()
	for round, rates := range [][2]float64{{90_000, 30_000}, {100_000, 25_000}, {40_000, 20_000}} {
		for i, program := range []string{"ringtrain", "ray"} {
			for training, steps := range map[string]int{"perceptron-sync": 200, "convnet-async": 400} {
				text := fmt.Sprintf(`{"event":"result","workers":2,"steps":%d,"samples_per_second":%v,"accuracy":0.9%d,"about":"%s 1.0"}`, steps, rates[i]*float64(steps), round+1, program)
				require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.json", training, round+1, program)), []byte(text), 0o600))
			}
		}
	}
	return dir
}

func TestTable(t *testing.T) {
	var out, errs strings.Builder
	csv := filepath.Join(t.TempDir(), "rounds.csv")
	require.Zero(t, exit([]string{"-csv", csv, "-require", "2.9", "-note", "A note.", files(t)}, &out, &errs), errs.String())
	require.Equal(t, `
### Parameter servers, 2 workers, batch 128 per worker

Median [minimum-maximum] of the rounds; samples/s of all workers. Above a ratio of 1, ringtrain is faster.

| training | updates | program | samples/s | ringtrain's / its | test accuracy | with |
|---|---|---|---|---|---|---|
| perceptron-sync | 200 | ringtrain | 18000000 [8000000-20000000] |  | 0.920 [0.910-0.930] | ringtrain 1.0 |
| perceptron-sync | 200 | Ray | 5000000 [4000000-6000000] | 3.00 | 0.920 [0.910-0.930] | ray 1.0 |
| convnet-async | 400 | ringtrain | 36000000 [16000000-40000000] |  | 0.920 [0.910-0.930] | ringtrain 1.0 |
| convnet-async | 400 | Ray | 10000000 [8000000-12000000] | 3.00 | 0.920 [0.910-0.930] | ray 1.0 |

A note.
`, out.String())
	lines, err := os.ReadFile(csv)
	require.NoError(t, err)
	require.Contains(t, string(lines), "perceptron-sync,3,ray,2,200,4e+06,0.93,ray 1.0\n")
}

// The curves are medians of the rounds, over rows.
func TestCurves(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	for round, last := range []float64{.8, .9, .7} {
		for program, first := range map[string]float64{"ringtrain": .5, "ray": .4} {
			for _, training := range []string{"perceptron-sync", "perceptron-async"} {
				text := fmt.Sprintf("{\"event\":\"eval\",\"step\":10,\"accuracy\":%v}\n{\"event\":\"eval\",\"step\":%d,\"accuracy\":1}\n{\"workers\":2,\"steps\":20,\"samples_per_second\":10,\"accuracy\":%v}\n", first, 11+round, last)
				require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.json", training, round+1, program)), []byte(text), 0o600))
			}
		}
	}
	runs, err := readAll(os.DirFS(dir))
	require.NoError(t, err)
	l, err := line(runs[:3])
	require.NoError(t, err)
	// The first run has evaluated after 10 and 11 updates, the others after 10, and after 12 or 13.
	require.InDeltaSlice(t, []float64{2.56, 2.816}, l.X, 1e-9)
	require.InDeltaSlice(t, []float64{.5, .75}, l.Y, 1e-9)

	var stdout, stderr strings.Builder
	require.Zero(t, exit([]string{"-plots", out, dir}, &stdout, &stderr), stderr.String())
	text, err := os.ReadFile(filepath.Join(out, "accuracy-perceptron.svg"))
	require.NoError(t, err)
	for _, name := range []string{"ringtrain, sync", "ringtrain, async", "Ray, sync", "Ray, async"} {
		require.Contains(t, string(text), ">"+name+"<")
	}
	require.FileExists(t, filepath.Join(out, "accuracy-perceptron.png"))

	require.Equal(t, 1, exit([]string{"-plots", out, files(t)}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "measure with --curves")
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
		{nil, 2, "usage: ray"},
		{[]string{"-require", "much", t.TempDir()}, 2, "usage: ray"},
		{[]string{t.TempDir()}, 1, "there are no files"},
		{[]string{filepath.Join(t.TempDir(), "missing")}, 1, "missing"},
		{[]string{"-require", "3.1", files(t)}, 1, "convnet-async: ringtrain's speed is 3.00 times that of Ray, less than 3.1"},
		{[]string{damaged("table.md", "")}, 1, "table.md: its name must have the form TRAINING-ROUND-PROGRAM.json"},
		{[]string{damaged("convnet-async-1-ray.json", "no JSON")}, 1, "convnet-async-1-ray.json: invalid character"},
		{[]string{damaged("convnet-async-1-ray.json", `{"workers":2,"steps":400,"accuracy":1}`)}, 1, "400 updates at 0 samples/s"},
		{[]string{damaged("convnet-async-1-ray.json", `{"workers":2,"steps":400,"samples_per_second":1}`)}, 1, "or no accuracy"},
		{[]string{damaged("convnet-async-1-ray.json", `{"workers":2,"steps":200,"samples_per_second":1,"accuracy":1}`)}, 1, "runs of convnet-async differ: "},
		{[]string{damaged("convnet-async-1-ray.json", `{"workers":4,"steps":400,"samples_per_second":1,"accuracy":1}`)}, 1, "runs of convnet-async differ: "},
	} {
		var out, errs strings.Builder
		require.Equal(t, c.code, exit(c.args, &out, &errs), "%v: %s", c.args, errs.String())
		require.Contains(t, errs.String(), c.say)
	}
}
