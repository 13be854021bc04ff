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

// peer writes one file: times in microseconds for sizes 4 and 4096, a mean of
// twice and a p99 of three times that for all but ours.
func peer(ranks, round int, program string, times ...float64) (name, text string) {
	var records []string
	for i, time := range times {
		mean := ""
		if program != ours {
			mean = fmt.Sprintf(`"mean_us": %v,`, 2*time)
		}
		records = append(records, fmt.Sprintf(`{"ranks": %d, "transport": "tcp", "size": %d, "time_us": %v, %s "p99_us": %v, "wrong": 0, "iterations": 5}`,
			ranks, 4<<(10*i), time, mean, 3*time))
	}
	return fmt.Sprintf("%d-%d-%s.json", ranks, round, program), "[" + strings.Join(records, ",") + "]"
}

// write makes a directory of files, given as names and texts in turn.
func write(t *testing.T, files ...string) string {
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0o600))
	}
	return dir
}

// threeRounds has ringtrain and Open MPI with 2 ranks. The machine was twice as
// slow in the last round, so the ratio of the medians is not the median ratio.
func threeRounds(t *testing.T) string {
	var files []string
	for _, f := range []struct {
		round         int
		ours, openmpi []float64
	}{
		{1, []float64{5, 1000}, []float64{10, 900}},
		{3, []float64{4, 3000}, []float64{9, 2100}},
		{2, []float64{6, 1500}, []float64{9, 3000}},
	} {
		name, text := peer(2, f.round, ours, f.ours...)
		files = append(files, name, text)
		name, text = peer(2, f.round, "openmpi", f.openmpi...)
		files = append(files, name, text)
	}
	return write(t, files...)
}

func TestTable(t *testing.T) {
	var out, errs bytes.Buffer
	csv := filepath.Join(t.TempDir(), "rounds.csv")
	require.Equal(t, 0, run([]string{"-csv", csv, "-note", "Not measured: Gloo.", threeRounds(t)}, &out, &errs), errs.String())
	require.Equal(t, `
### 2 ranks

Microseconds, median [least-most] of the rounds, which are 3; a ratio above 1: ringtrain is faster.

| size | ringtrain, tcp | Open MPI, tcp | Open MPI / ringtrain |
|---|---|---|---|
| 4 B | 5.00 [4.00-6.00] | 9.00 [9.00-10.0] | 2.00 |
| 4 KB | 1500 [1000-3000] | 2100 [900-3000] | 0.90 |

The same calls: the mean of a round (- where a program does not say) and the time that 99 of 100 calls kept, medians of the rounds.

| size | ringtrain, tcp: mean | p99 | Open MPI, tcp: mean | p99 |
|---|---|---|---|---|
| 4 B | - | 15.0 | 18.0 | 27.0 |
| 4 KB | - | 4500 | 4200 | 6300 |

Not measured: Gloo.
`, out.String())

	text, err := os.ReadFile(csv)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, lines, 1+3*2*2)
	require.Equal(t, "ranks,round,program,transport,size,time_us,mean_us,p99_us,algbw,busbw,iterations", lines[0])
	require.Equal(t, "2,1,ringtrain,tcp,4,5,,15,0,0,5", lines[1])
	require.Equal(t, "2,3,openmpi,tcp,4096,2100,4200,6300,0,0,5", lines[12])
}

func TestRanksAndColumnsAreInOrder(t *testing.T) {
	var files []string
	for _, ranks := range []int{16, 2} {
		for _, program := range []string{"gloo", "openmpi", "ringtrain-tls", "another", ours} {
			name, text := peer(ranks, 1, program, 1, 2)
			files = append(files, name, text)
		}
	}
	var out, errs bytes.Buffer
	require.Equal(t, 0, run([]string{write(t, files...)}, &out, &errs), errs.String())
	require.Contains(t, out.String(), "| size | ringtrain, tcp | ringtrain, TLS, tcp | Gloo, tcp | Open MPI, tcp | another, tcp "+
		"| Gloo / ringtrain | Open MPI / ringtrain | another / ringtrain |")
	require.Less(t, strings.Index(out.String(), "### 2 ranks"), strings.Index(out.String(), "### 16 ranks"))
}

func TestRequire(t *testing.T) {
	dir := threeRounds(t)
	var out, errs bytes.Buffer
	require.Equal(t, 0, run([]string{"-require", "0.9", dir}, &out, &errs), errs.String())
	out.Reset()
	require.Equal(t, 1, run([]string{"-require", "0.95", dir}, &out, &errs))
	require.Contains(t, out.String(), "### 2 ranks", "the table is there all the same")
	require.Equal(t, "peers: 2 ranks, 4 KB: Open MPI / ringtrain is 0.90, not 0.95\n", errs.String())
}

func TestWhatDoesNotFit(t *testing.T) {
	name, good := peer(2, 1, ours, 1, 2)
	_, longer := peer(2, 1, "gloo", 1, 2, 3)
	_, four := peer(4, 1, ours, 1, 2)
	for want, files := range map[string][]string{
		"there are no files":                         {},
		"notes.txt is not named":                     {name, good, "notes.txt", ""},
		"2-1-gloo.json: unexpected end":              {name, good, "2-1-gloo.json", "["},
		"2-1-ringtrain.json: there are no records":   {name, "[]"},
		"2-1-ringtrain.json: a record is of 4 ranks": {name, four},
		"4 KB: 3 elements of results were wrong":     {name, strings.Replace(good, `4096, "time_us": 2,  "p99_us": 6, "wrong": 0`, `4096, "time_us": 2,  "p99_us": 6, "wrong": 3`, 1)},
		"4 B: nobody looked":                         {name, strings.ReplaceAll(good, `"wrong": 0`, `"wrong": null`)},
		"4 B took 0 us":                              {name, strings.Replace(good, `"time_us": 1`, `"time_us": 0`, 1)},
		"round 1, gloo: it has the sizes":            {name, good, "2-1-gloo.json", longer},
		"2 ranks: ringtrain is missing":              {"2-1-gloo.json", good},
		"ringtrain has the rounds [1], gloo [2]":     {name, good, "2-2-gloo.json", good},
	} {
		t.Run(want, func(t *testing.T) {
			var out, errs bytes.Buffer
			require.Equal(t, 1, run([]string{write(t, files...)}, &out, &errs))
			require.Contains(t, errs.String(), want)
			require.Empty(t, out.String())
		})
	}
}

func TestNumbers(t *testing.T) {
	for want, x := range map[string]float64{"0.40": .4, "9.99": 9.99, "12.3": 12.34, "1234": 1234.4} {
		require.Equal(t, want, number(x))
	}
	for want, x := range map[string]float64{"0.0034": .00342, "0.52": .52, "118.50": 118.5} {
		require.Equal(t, want, ratio(x))
	}
	for want, x := range map[string]int{"4 B": 4, "64 KB": 65536, "3 MB": 3 << 20, "1 GB": 1 << 30, "1000 B": 1000} {
		require.Equal(t, want, formatSize(x))
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"a", "b"}, {"-nonsense", "a"}} {
		var out, errs bytes.Buffer
		require.Equal(t, 2, run(args, &out, &errs))
		require.NotEmpty(t, errs.String())
	}
}
