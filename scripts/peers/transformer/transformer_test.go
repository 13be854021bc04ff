package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// command runs the program and returns its exit code and output.
func command(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(args, &out, &errs)
	return code, out.String(), errs.String()
}

// files writes name and text alternately below a new directory.
func files(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(files[i+1]), 0o600))
	}
	return dir
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"text", "x"}, {"text", ".", "none", "x"}, {"batches", "x", "0", "1", "1", "y"}, {"table"}, {"table", "-x"}} {
		code, _, stderr := command(args...)
		require.Equal(t, 2, code, "%v", args)
		require.Contains(t, stderr, "usage: transformer", "%v", args)
	}
}

// The text depends only on the files, and ends where a character does.
func TestText(t *testing.T) {
	dir := files(t, "a.go", "aaaa", "b/b.go", "éé", "b/c.go", "cc", "d.txt", "no", "e.go", "\xff")
	all := ""
	for size := 10; size > 0; size-- {
		file := filepath.Join(t.TempDir(), "text")
		code, _, stderr := command("text", dir, fmt.Sprint(size), file)
		require.Zero(t, code, stderr)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if all == "" {
			all = string(text)
		}
		require.Equal(t, strings.ToValidUTF8(all[:size], ""), string(text))
	}
	for _, part := range []string{"aaaa", "éé", "cc"} {
		require.Contains(t, all, part)
	}
	code, _, stderr := command("text", dir, "11", filepath.Join(dir, "x"))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "have only 10 bytes, not 11")
}

// Every character to train on but the last is in some row of the first epoch, followed by
// its label, and the last tenth is held out.
func TestBatches(t *testing.T) {
	letters := "abcdefghijklmnopqrstuvwxyz0123456789ABCD"
	dir := files(t, "text", letters)
	file := filepath.Join(dir, "batches")
	code, _, stderr := command("batches", filepath.Join(dir, "text"), "3", "5", "3", file)
	require.Zero(t, code, stderr)
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	words := make([]int32, len(raw)/4)
	require.NoError(t, binary.Read(bytes.NewReader(raw), binary.LittleEndian, words))
	// 36 characters to train on and the unknown one.
	require.Equal(t, []int32{37, 3, 3}, words[:3])
	words = words[3:]
	seen := map[int32]int{}
	for _, rows := range []int32{5, 5, 1, 1} {
		require.Equal(t, rows, words[0])
		for _, row := range [][]int32{words[1:5], words[1+4*(rows-1):][:4]} {
			if row[3] != 0 {
				require.Equal(t, row[0]%36+1, row[1]) // neighbours in the text
			}
		}
		for i := range rows {
			seen[words[1+4*i]]++
		}
		words = words[1+4*rows:]
	}
	require.Empty(t, words)
	require.Len(t, seen, 12) // 11 rows to train on, and one of unknown characters
	code, _, stderr = command("batches", filepath.Join(dir, "none"), "3", "5", "3", file)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "none")
}

// events returns what a program prints that takes each step in the same time.
func events(steps int, seconds, factor, held float64) string {
	var b strings.Builder
	for i := 1; i <= steps; i++ {
		fmt.Fprintf(&b, `{"event":"step","step":%d,"loss":%v,"seconds":%v}`+"\n", i, (1+1/float64(i))*factor, seconds*float64(i))
	}
	fmt.Fprintf(&b, `{"event":"eval","bits_per_character":9}`+"\n"+`{"event":"result","bits_per_character":%v}`+"\n", held)
	return b.String()
}

func TestTable(t *testing.T) {
	dir := files(t,
		"loss-1-ringtrain.json", events(30, .05, 1, 2), "loss-1-pytorch.json", events(30, .06, 1, 2.02),
		"time-1-ringtrain.json", events(20, .05, 1, 2), "time-1-pytorch.json", events(20, .06, 1, 2),
		"time-2-pytorch.json", events(20, .08, 1, 2), "time-2-ringtrain.json", events(20, .08, 1, 2),
	)
	csv := filepath.Join(t.TempDir(), "csv")
	code, stdout, stderr := command("table", "-csv", csv, "-require", "1.1", "-note", "A note.", dir)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "| ringtrain | 2.8854 | 1.6348 | +0.00 % | 2.0000 | -0.99 % |\n| PyTorch | 2.8854 | 1.6348 |  | 2.0200 |  |\n")
	require.Contains(t, stdout, "| ringtrain | 65.0 [50.0-80.0] | 1.10 |\n| PyTorch | 70.0 [60.0-80.0] |  |\n")
	require.Contains(t, stdout, "\nA note.\n")
	text, err := os.ReadFile(csv)
	require.NoError(t, err)
	require.Len(t, strings.Split(strings.TrimSpace(string(text)), "\n"), 7)
	code, stdout, stderr = command("table", "-require", "1.2", dir)
	require.Equal(t, 1, code)
	require.NotEmpty(t, stdout)
	require.Contains(t, stderr, "PyTorch's time is 1.10 of ringtrain's, but must be at least 1.20")
}

func TestTableMistakes(t *testing.T) {
	good := events(30, .05, 1, 2)
	for name, c := range map[string]struct {
		want  string
		files []string
	}{
		"name":      {"must have the form CASE-ROUND-PROGRAM.json", []string{"x.json", good}},
		"no losses": {"losses of ringtrain are missing", []string{"loss-1-pytorch.json", good}},
		"no times":  {"times of ringtrain are missing", []string{"loss-1-ringtrain.json", good, "time-1-pytorch.json", good}},
		"rounds": {"has the rounds", []string{"loss-1-ringtrain.json", good, "time-1-ringtrain.json", good, "time-2-ringtrain.json", good,
			"time-1-pytorch.json", good}},
		"few steps": {"the first 10 do not count", []string{"loss-1-ringtrain.json", events(10, 1, 1, 2)}},
		"no result": {"no loss of the held-out rows", []string{"loss-1-ringtrain.json", events(30, 1, 1, 0)}},
		"order":     {"step 2 follows step 0", []string{"loss-1-ringtrain.json", `{"event":"step","step":2}`}},
		"text":      {"invalid character", []string{"loss-1-ringtrain.json", "x"}},
		"rising":    {"but it must fall", []string{"loss-1-ringtrain.json", events(30, 1, -1, 2)}},
		"first":     {"of the first step", []string{"loss-1-ringtrain.json", good, "loss-1-pytorch.json", events(30, 1, 1.00002, 2)}},
		"held out":  {"of the held-out rows", []string{"loss-1-ringtrain.json", good, "loss-1-pytorch.json", events(30, 1, 1, 2.11)}},
		"end":       {"at the end", []string{"loss-1-ringtrain.json", good, "loss-1-pytorch.json", strings.ReplaceAll(good, `"loss":1.0`, `"loss":1.1`)}},
		"steps":     {"took 31 steps", []string{"loss-1-ringtrain.json", good, "loss-1-pytorch.json", events(31, 1, 1, 2)}},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := command("table", files(t, c.files...))
			require.Equal(t, 1, code)
			require.Empty(t, stdout)
			require.Contains(t, stderr, c.want)
		})
	}
}
