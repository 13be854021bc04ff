package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ranks in goroutines and ranks in processes give the same table and the same files.
func TestBenchCollective(t *testing.T) {
	for _, transport := range []string{"inproc", "tcp", "shm"} {
		for _, op := range []string{"allreduce", "allgather", "broadcast"} {
			dir := t.TempDir()
			file := func(name string) string { return filepath.Join(dir, name) }
			cmd := command(t, "bench", "collective", op, "--ranks", "3", "--transport", transport, "-b", "1K", "-e", "16K", "-f", "4", "-n", "3", "-w", "1",
				"-d", "double", "-o", "max", "-r", "2", "--json", file("r.json"), "--csv", file("r.csv"), "--plot", file("r.svg"))
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			require.NoError(t, cmd.Run(), "%s", &stderr)
			require.Empty(t, stderr.String())
			rows := 0
			for line := range strings.Lines(stdout.String()) {
				if line[0] != '#' {
					fields := strings.Fields(line)
					require.Len(t, fields, 15, line)
					require.Equal(t, "double", fields[2])
					require.Equal(t, "3", fields[14])
					rows++
				}
			}
			require.Equal(t, 3, rows, &stdout)
			require.Contains(t, stdout.String(), "#  Rank  2 on ")
			require.Contains(t, stdout.String(), "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : ")

			text, err := os.ReadFile(file("r.json"))
			require.NoError(t, err)
			var records []struct {
				Op, DType, Transport string
				Ranks, Size          int
				Time                 float64 `json:"time_us"`
				Wrong                *int
			}
			require.NoError(t, json.Unmarshal(text, &records))
			require.Len(t, records, 3)
			for i, r := range records {
				require.Equal(t, op, r.Op)
				require.Equal(t, "float64", r.DType)
				require.Equal(t, transport, r.Transport)
				require.Equal(t, 3, r.Ranks)
				require.InDelta(t, 1024<<(2*i), r.Size, 16)
				require.Positive(t, r.Time)
				require.Zero(t, *r.Wrong)
			}
			for name, begin := range map[string]string{"r.csv": "op,dtype,ranks,", "r.svg": "<?xml"} {
				text, err := os.ReadFile(file(name))
				require.NoError(t, err)
				require.True(t, bytes.HasPrefix(text, []byte(begin)), "%s: %s", name, text)
			}
		}
	}
}

func TestBenchWithoutCheck(t *testing.T) {
	code, stdout, stderr := result("bench", "collective", "--transport", "inproc", "-b", "4", "-e", "4", "-n", "1", "-c", "0")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "# ringtrain bench collective allreduce transport inproc ranks 2\n")
	require.Contains(t, stdout, "N/A")
	require.Contains(t, stdout, "# Out of bounds values : 0 NOT CHECKED\n")
}

func TestBenchUsageErrors(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old.json")
	require.NoError(t, os.WriteFile(old, []byte("[]"), 0o600))
	for _, c := range []struct {
		want string
		args []string
	}{
		{`unknown operation "shout"`, []string{"shout"}},
		{"takes one operation, not 2", []string{"allreduce", "broadcast"}},
		{"--ranks must be from 1 to 256", []string{"--ranks", "0"}},
		{"--transport must be one of auto, tcp, shm, inproc, not \"smoke\"", []string{"--transport", "smoke"}},
		{"--hosts must be local or netns, not \"mars\"", []string{"--hosts", "mars"}},
		{"--link needs --hosts netns", []string{"--link", "1gbit"}},
		{`--link: rate must be a number with a unit (bit, kbit, mbit, gbit or tbit) such as 2.5gbit, not "fast"`, []string{"--hosts", "netns", "--link", "fast"}},
		{"cannot be combined with --hosts netns", []string{"--hosts", "netns", "--transport", "inproc"}},
		{"cannot be combined with --nodes", []string{"--hosts", "netns", "--nodes", "2"}},
		{"cannot be combined with --nodes", []string{"--hosts", "netns", "--bind", "127.0.0.1"}},
		{"has room for 250 ranks", []string{"--hosts", "netns", "--ranks", "251"}},
		{"--nodes must be at least 1", []string{"--nodes", "0"}},
		{"--streams must be from 1 to 8, or 0 for the default of 1, not 9", []string{"--streams", "9"}},
		{"cannot be combined with --nodes, --join or --streams", []string{"--transport", "inproc", "--streams", "2"}},
		{"--join needs --nodes", []string{"--join", "127.0.0.1:1"}},
		{"must be HOST:PORT", []string{"--nodes", "2", "--join", "127.0.0.1"}},
		{"cannot be combined with --nodes, --join or --streams", []string{"--nodes", "2", "--transport", "inproc"}},
		{"no such file", []string{"--key-file", filepath.Join(dir, "none")}},
		{"the root must be a rank from 0 to 3, not 4", []string{"broadcast", "--nodes", "2", "-r", "4"}},
		{`-b: "x" is not a size`, []string{"-b", "x"}},
		{`-e: "1T" is not a size`, []string{"-e", "1T"}},
		{"-b must be at most -e, 4, not 8", []string{"-b", "8", "-e", "4"}},
		{"-f must be at least 2, not 1", []string{"-f", "1"}},
		{"GB of its memory: lower -e or --ranks", []string{"--transport", "inproc", "-b", "1000000G", "-e", "1000000G"}},
		{`unknown type "quarter"`, []string{"-d", "quarter"}},
		{`unknown reduction "all"`, []string{"-o", "all"}},
		{"the root must be a rank from 0 to 1, not 2", []string{"broadcast", "-r", "2"}},
		{"neither may be negative", []string{"-n", "-1"}},
		{"1001 pieces of garbage", []string{"--garbage", "1001"}},
		{"-c must be 0 or 1", []string{"-c", "2"}},
		{"--iters must be a whole number, not \"many\"", []string{"-n", "many"}},
		{".png or .svg", []string{"--plot", filepath.Join(dir, "x.pdf")}},
		{"its directory does not exist", []string{"--json", filepath.Join(dir, "no", "x.json")}},
		{"is a directory", []string{"--csv", dir}},
		{"cannot write the results: ", []string{"--transport", "inproc", "-e", "4", "--json", old, "--csv", filepath.Join(dir, "new.csv"), "--plot", filepath.Join(dir, strings.Repeat("x", 300)+".png")}},
		{"--json is empty", []string{"--json", ""}},
		{"--csv is empty", []string{"--csv", ""}},
		{"--plot is empty", []string{"--plot", ""}},
		{"--algorithm is empty", []string{"--algorithm", ""}},
		{"bench takes no --training.batch_size", []string{"--training.batch_size", "3"}},
	} {
		code, stdout, stderr := result(append([]string{"bench", "collective"}, c.args...)...)
		require.Equal(t, 2, code, "%v: %s", c.args, stderr)
		require.Contains(t, strings.ReplaceAll(stderr, "collective takes", "bench takes"), c.want, "%v", c.args)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
		require.Empty(t, stdout)
	}
	text, err := os.ReadFile(old)
	require.NoError(t, err)
	require.Equal(t, "[]", string(text), "the check leaves old files as they are")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "and removes new ones")
	code, stdout, _ := result("bench")
	require.Zero(t, code)
	require.Contains(t, stdout, "Usage:")
}
