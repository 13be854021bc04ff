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

// peer returns one file: times in microseconds for the sizes 4, 4096 and so on, a mean
// of twice and a p99 of three times that, and one more with a check of the result.
func peer(ranks, round int, program string, times ...float64) (name, text string) {
	var records []string
	for i, time := range times {
		records = append(records, record(ranks, 4<<(10*i), time))
	}
	return fmt.Sprintf("%d-%d-%s.json", ranks, round, program), "[" + strings.Join(records, ",") + "]"
}

func record(ranks, size int, time float64) string {
	return fmt.Sprintf(`{"ranks": %d, "transport": "tcp", "size": %d, "time_us": %v, "mean_us": %v, "p99_us": %v, "read_us": %v, "wrong": 0, "iterations": 5}`,
		ranks, size, time, 2*time, 3*time, time+1)
}

// write makes a directory of files from names and texts in turn.
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

// The bare exchange has its own sizes, and 2 ranks.
func TestBare(t *testing.T) {
	dir := threeRounds(t)
	for round, time := range []float64{1: 2, 2: 3, 3: 2} {
		if round > 0 {
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("2-%d-bare.json", round)), []byte("["+record(2, 4, time)+"]"), 0o600))
		}
	}
	var out, errs bytes.Buffer
	require.Equal(t, 0, run([]string{"table", "-require", ".5", dir}, &out, &errs), errs.String())
	require.Contains(t, out.String(), `
| size | bare | best peer / bare | ringtrain / bare |
|---|---|---|---|
| 4 B | 2.00 [2.00-3.00] | 4.50 | 2.00 |
`)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "2-3-bare.json"), []byte("[]"), 0o600))
	require.Equal(t, 1, run([]string{"table", dir}, &out, &errs))
	require.Contains(t, errs.String(), "bare has 2 rounds, ringtrain 3")
}

func TestTable(t *testing.T) {
	var out, errs bytes.Buffer
	csv := filepath.Join(t.TempDir(), "rounds.csv")
	require.Equal(t, 0, run([]string{"table", "-csv", csv, "-note", "Not measured: Gloo.", threeRounds(t)}, &out, &errs), errs.String())
	require.Equal(t, `
### 2 ranks

Microseconds per call: median [minimum-maximum] of 3 rounds. Above a ratio of 1, ringtrain is faster.

| size | ringtrain, tcp | Open MPI, tcp | Open MPI / ringtrain |
|---|---|---|---|
| 4 B | 5.00 [4.00-6.00] | 9.00 [9.00-10.0] | 2.00 |
| 4 KB | 1500 [1000-3000] | 2100 [900-3000] | 0.90 |

The same calls: the mean of a round, and the time within which 99 of 100 calls finished. Medians of the rounds.

| size | ringtrain, tcp: mean | p99 | Open MPI, tcp: mean | p99 |
|---|---|---|---|---|
| 4 B | 10.0 | 15.0 | 18.0 | 27.0 |
| 4 KB | 3000 | 4500 | 4200 | 6300 |

A call plus one check of its result.

| size | ringtrain, tcp | Open MPI, tcp | Open MPI / ringtrain |
|---|---|---|---|
| 4 B | 6.00 [5.00-7.00] | 10.0 [10.0-11.0] | 1.83 |
| 4 KB | 1501 [1001-3001] | 2101 [901-3001] | 0.90 |

Not measured: Gloo.
`, out.String())

	text, err := os.ReadFile(csv)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, lines, 1+3*2*2)
	require.Equal(t, "ranks,round,program,transport,size,time_us,mean_us,p99_us,read_us,algbw,busbw,iterations", lines[0])
	require.Equal(t, "2,1,ringtrain,tcp,4,5,10,15,6,0,0,5", lines[1])
	require.Equal(t, "2,3,openmpi,tcp,4096,2100,4200,6300,2101,0,0,5", lines[12])
}

func TestRanksAndColumnsAreInOrder(t *testing.T) {
	var files []string
	for _, ranks := range []int{16, 2} {
		for _, program := range []string{"gloo", "openmpi", "ringtrain-tls", "another", oursShared, ours} {
			name, text := peer(ranks, 1, program, 1, 2)
			files = append(files, name, text)
		}
	}
	var out, errs bytes.Buffer
	require.Equal(t, 0, run([]string{"table", write(t, files...)}, &out, &errs), errs.String())
	require.Contains(t, out.String(), "| size | ringtrain, tcp | ringtrain, Node.Alloc, tcp | ringtrain, TLS, tcp | Gloo, tcp | Open MPI, tcp | another, tcp "+
		"| Gloo / ringtrain | Open MPI / ringtrain | another / ringtrain | best peer / ringtrain "+
		"| Gloo / ringtrain, Node.Alloc | Open MPI / ringtrain, Node.Alloc | another / ringtrain, Node.Alloc | best peer / ringtrain, Node.Alloc |")
	require.Less(t, strings.Index(out.String(), "### 2 ranks"), strings.Index(out.String(), "### 16 ranks"))
}

// The best peer is the fastest of each round, whichever that is.
func TestBestPeer(t *testing.T) {
	var files []string
	for round, times := range [][3]float64{{10, 20, 40}, {10, 80, 30}, {10, 60, 60}} { // ours, Gloo, Open MPI: 2, 3 and 6 times as long
		for i, program := range []string{ours, "gloo", "openmpi"} {
			name, text := peer(2, round+1, program, times[i])
			files = append(files, name, text)
		}
	}
	var out, errs bytes.Buffer
	require.Equal(t, 0, run([]string{"table", write(t, files...)}, &out, &errs), errs.String())
	require.Contains(t, out.String(), "| 4 B | 10.0 [10.0-10.0] | 60.0 [20.0-80.0] | 40.0 [30.0-60.0] | 6.00 | 4.00 | 3.00 |")
}

// Peers are compared with shared memory as with ordinary memory.
func TestSharedMemory(t *testing.T) {
	var files []string
	for program, time := range map[string]float64{ours: 9, oursShared: 4, "openmpi": 8} {
		name, text := peer(2, 1, program, time)
		files = append(files, name, text)
	}
	dir := write(t, files...)
	var out, errs bytes.Buffer
	require.Equal(t, 1, run([]string{"table", "-require", "1", dir}, &out, &errs))
	require.Contains(t, out.String(), "| 4 B | 9.00 [9.00-9.00] | 4.00 [4.00-4.00] | 8.00 [8.00-8.00] | 0.89 | 2.00 |")
	require.Contains(t, out.String(), "| 4 B | 10.0 [10.0-10.0] | 5.00 [5.00-5.00] | 9.00 [9.00-9.00] | 0.90 | 1.80 |", "with a check of the result")
	require.Equal(t, "peers: 2 ranks, 4 B: Open MPI / ringtrain is 0.89, but must be at least 1\n", errs.String())

	require.NoError(t, os.Remove(filepath.Join(dir, "2-1-ringtrain.json")))
	require.Equal(t, 0, run([]string{"table", "-require", "2", dir}, &out, &errs), "ordinary memory is not needed")
	require.Equal(t, 1, run([]string{"table", "-require", "2.01", dir}, &out, &errs))
	require.Contains(t, errs.String(), "Open MPI / ringtrain, Node.Alloc is 2.00, but must be at least 2.01")
}

// Below the tables are what garbage does to the slowest calls, and how near the
// programs come to the bound of memory.
func TestGarbageAndMemory(t *testing.T) {
	var files []string
	for round := 1; round <= 3; round++ {
		files = append(files,
			fmt.Sprintf("2-%d-ringtrain.json", round), "["+record(2, boundSize, 20_000)+"]",
			fmt.Sprintf("2-%d-ringtrain-garbage.json", round), strings.Replace("["+record(2, 4096, 2)+"]", `"p99_us": 6`, fmt.Sprintf(`"p99_us": %d`, 10*round), 1),
			fmt.Sprintf("2-%d-memory.json", round), fmt.Sprintf(`{"threads": 2, "bytes": %d, "copy": %d, "add": %d}`, boundSize, 20+round, 10*round),
		)
	}
	dir := write(t, files...)
	var out, errs bytes.Buffer
	require.Equal(t, 0, run([]string{"table", dir}, &out, &errs), errs.String())
	require.Contains(t, out.String(), `
ringtrain, 4 KB, while a goroutine of each rank makes garbage: median 2.00 [2.00-2.00], p99 20.0 [10.0-30.0], p99 / median 10.00 [5.00-15.00].
`)
	// 4 * 64 MB are 268.4 million bytes: at 22 GB/s, the median, 12202 us.
	require.Contains(t, out.String(), `
Memory, vectors of 64 MB on 2 cores: 22.0 [21.0-23.0] GB/s copying, 20.0 [10.0-30.0] adding float32.`+
		" An allreduce of 64 MB moves at least 256 MB, which takes 12202 [8948-12783] us at the faster speed. The programs reach this share of the bound: ringtrain, tcp 61 %.\n")
}

func TestMeasuresMemory(t *testing.T) {
	var out, errs bytes.Buffer
	require.Equal(t, 0, memory(1, 1<<20, &out, &errs), errs.String())
	name, text := peer(2, 1, ours, 1)
	var table bytes.Buffer
	require.Equal(t, 0, run([]string{"table", write(t, name, text, "2-1-memory.json", out.String())}, &table, &errs), errs.String())
	require.Contains(t, table.String(), "Memory, vectors of 1 MB on 1 core: ")
	require.NotContains(t, table.String(), "bound", "there is no size of 64 MB")
}

func TestRequire(t *testing.T) {
	dir := threeRounds(t)
	var out, errs bytes.Buffer
	require.Equal(t, 0, run([]string{"table", "-require", "0.9", dir}, &out, &errs), errs.String())
	out.Reset()
	require.Equal(t, 1, run([]string{"table", "-require", "0.95", dir}, &out, &errs))
	require.Contains(t, out.String(), "### 2 ranks", "the table is still written")
	require.Equal(t, "peers: 2 ranks, 4 KB: Open MPI / ringtrain is 0.90, but must be at least 0.95\n", errs.String())
}

func TestWhatDoesNotFit(t *testing.T) {
	name, good := peer(2, 1, ours, 1, 2)
	_, longer := peer(2, 1, "gloo", 1, 2, 3)
	_, four := peer(4, 1, ours, 1, 2)
	for want, files := range map[string][]string{
		"there are no files":                       {},
		"notes.txt: its name must have the form":   {name, good, "notes.txt", ""},
		"2-1-gloo.json: unexpected end":            {name, good, "2-1-gloo.json", "["},
		"2-1-ringtrain.json: there are no records": {name, "[]"},
		"2-1-ringtrain.json: a record has 4 ranks": {name, four},
		"4 KB: 3 elements of results were wrong":   {name, strings.Replace(good, `4096, "time_us": 2, "mean_us": 4, "p99_us": 6, "read_us": 3, "wrong": 0`, `4096, "time_us": 2, "mean_us": 4, "p99_us": 6, "read_us": 3, "wrong": 3`, 1)},
		"4 B: the results were not checked":        {name, strings.ReplaceAll(good, `"wrong": 0`, `"wrong": null`)},
		"4 B took 0 us":                            {name, strings.Replace(good, `"time_us": 1`, `"time_us": 0`, 1)},
		"and 0 with a check of the result":         {name, strings.Replace(good, `"read_us": 2`, `"read_us": 0`, 1)},
		"2-1-memory.json: memory copies at 0 GB/s": {name, good, "2-1-memory.json", "{}"},
		"memory has 1 rounds, ringtrain 2":         {name, good, "2-2-ringtrain.json", good, "2-1-memory.json", `{"copy": 1, "add": 1}`},
		"it must have one size, the same in each":  {name, good, "2-1-ringtrain-garbage.json", good},
		"round 1, gloo: it has the sizes":          {name, good, "2-1-gloo.json", longer},
		"2 ranks: ringtrain is missing":            {"2-1-gloo.json", good},
		"ringtrain has the rounds [1], gloo [2]":   {name, good, "2-2-gloo.json", good},
	} {
		t.Run(want, func(t *testing.T) {
			var out, errs bytes.Buffer
			require.Equal(t, 1, run([]string{"table", write(t, files...)}, &out, &errs))
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
		require.Equal(t, want, formatRatio(x))
	}
	for want, x := range map[string]int{"4 B": 4, "64 KB": 65536, "3 MB": 3 << 20, "1 GB": 1 << 30, "1000 B": 1000} {
		require.Equal(t, want, formatSize(x))
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"a"}, {"table"}, {"table", "a", "b"}, {"table", "-nonsense", "a"}, {"memory"}, {"memory", "0"}, {"memory", "two"}} {
		var out, errs bytes.Buffer
		require.Equal(t, 2, run(args, &out, &errs))
		require.NotEmpty(t, errs.String())
	}
}
