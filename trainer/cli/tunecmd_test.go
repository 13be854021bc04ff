package cli_test

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// cached runs a command whose cache directory is dir.
func cached(t *testing.T, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := command(t, args...)
	env := cmd.Env
	if env == nil {
		env = os.Environ()
	}
	cmd.Env = append(env, "XDG_CACHE_HOME="+dir, "HOME="+dir, "LocalAppData="+dir)
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	_ = cmd.Run() // the exit code tells
	return out.String(), err.String(), cmd.ProcessState.ExitCode()
}

// Only ranks in the same setting use what tune has saved.
func TestTune(t *testing.T) {
	dir := t.TempDir()
	out, stderr, code := cached(t, dir, "tune", "--workers", "3", "--transport", "tcp", "-e", "1K", "-f", "16")
	require.Zero(t, code, stderr)
	require.Empty(t, stderr)
	require.Contains(t, out, "measured us")
	require.Regexp(t, `4  (one-shot|bruck|collected) `, out, "one of the algorithms for small sizes")
	_, path, found := strings.Cut(strings.TrimSpace(out), "saved to ")
	require.True(t, found, out)
	require.FileExists(t, path)

	bench := func(more ...string) (string, string, int) {
		return cached(t, dir, append([]string{"bench", "collective", "--transport", "tcp", "-e", "64", "-n", "2"}, more...)...)
	}
	out, stderr, code = bench("--ranks", "3", "--json", filepath.Join(dir, "r.json"))
	require.Zero(t, code, stderr)
	require.Contains(t, out, "# allreduce algorithms: as ringtrain tune measured for 3 sizes, from "+path)
	require.Contains(t, out, "measured to be the fastest (tune)")
	text, err := os.ReadFile(filepath.Join(dir, "r.json"))
	require.NoError(t, err)
	var records []struct {
		Algorithm, Why string
		Segment        int     `json:"segment_bytes"`
		Predicted      float64 `json:"predicted_us"`
	}
	require.NoError(t, json.Unmarshal(text, &records))
	for _, r := range records {
		require.NotEmpty(t, r.Algorithm)
		require.Positive(t, r.Segment)
		require.Positive(t, r.Predicted)
	}
	for _, others := range [][]string{{"--ranks", "2"}, {"--ranks", "3", "--order", "any"}, {"--ranks", "3", "--streams", "2"}, {"--ranks", "3", "--tune", "off"}} {
		out, stderr, code = bench(others...)
		require.Zero(t, code, stderr)
		require.NotContains(t, out, "measured to be the fastest", "%v", others)
	}
	_, stderr, code = bench("--ranks", "2", "--tune", path)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "was measured with 3 ranks, not 2: measure again with ringtrain tune")
	_, stderr, code = bench("--ranks", "3", "--streams", "2", "--tune", path)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "was measured in another setting (different: streams)")
	require.NoError(t, os.WriteFile(path, []byte("{}"), 0o644))
	_, stderr, code = bench("--ranks", "3")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "measure again with ringtrain tune")
}

// If the user's cache directory is unusable, a temporary one is used. The user is told
// once, and workers use it too.
func TestTuneWithoutCacheDirectory(t *testing.T) {
	none := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(none, nil, 0o666))
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("TMP", temporary)
	out, stderr, code := cached(t, none, "tune", "--workers", "2", "--transport", "tcp", "-e", "4")
	require.Zero(t, code, stderr)
	require.Regexp(t, `^ringtrain: keeping the cache in `+regexp.QuoteMeta(temporary)+`\S+, because your cache directory cannot be used: .*\n$`, stderr)
	_, path, found := strings.Cut(strings.TrimSpace(out), "saved to ")
	require.True(t, found, out)
	require.True(t, strings.HasPrefix(path, temporary), path)
	out, stderr, code = cached(t, none, "bench", "collective", "--ranks", "2", "--transport", "tcp", "-e", "4", "-n", "1")
	require.Zero(t, code, stderr)
	require.Empty(t, stderr)
	require.Contains(t, out, path, "the table is found where it was saved")
}

// Messages of a forced algorithm have the given size.
func TestBenchSegment(t *testing.T) {
	out, stderr, code := cached(t, t.TempDir(), "bench", "collective", "--transport", "tcp", "-b", "1M", "-e", "1M", "-n", "1", "--algorithm", "ring", "--segment", "64K")
	require.Zero(t, code, stderr)
	require.Regexp(t, `1048576  ring +65536 `, out)
}

// An algorithm can be forced if the ranks support it and --order allows it.
func TestBenchAlgorithm(t *testing.T) {
	for algorithm, order := range map[string]string{"one-shot": "ring", "direct": "ring", "ring": "ring", "halving-doubling": "any", "double-tree": "any"} {
		for _, transport := range []string{"tcp", "inproc"} {
			out, stderr, code := cached(t, t.TempDir(), "bench", "collective", "--ranks", "3", "--transport", transport, "-b", "4", "-e", "400000", "-f", "100000", "-n", "1",
				"--algorithm", algorithm, "--order", order)
			require.Zero(t, code, stderr)
			require.Equal(t, 2, strings.Count(out, "forced"), out)
			require.Equal(t, 2, strings.Count(out, "  "+algorithm+" "), out)
			require.Contains(t, out, "# Out of bounds values : 0 OK")
		}
	}
}

func TestTuneUsageErrors(t *testing.T) {
	dir := t.TempDir()
	empty, two := filepath.Join(dir, "empty.json"), filepath.Join(dir, "two.json")
	require.NoError(t, os.WriteFile(empty, []byte("{}"), 0o644))
	code, _, stderr := result("tune", "--workers", "2", "--transport", "inproc", "-e", "4", "--out", two)
	require.Zero(t, code, stderr)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for want, args := range map[string][]string{
		"worker 0 of 2 cannot serve there":          small(t, "--workers", "2", "--metrics", taken.Addr().String()),
		"worker 1 of 2 cannot serve there":          small(t, "--workers", "2", "--metrics", "127.0.0.1:65535"),
		"empty.json is not a table":                 small(t, "--workers", "2", "--tune", empty),
		"open no-such-table":                        small(t, "--workers", "2", "--tune", "no-such-table"),
		"measured with 2 ranks, not 3":              small(t, "--workers", "3", "--tune", two),
		"is not a file: name one":                   {"tune", "--out", dir},
		"--out is empty":                            {"tune", "--out", ""},
		"there is no place for the table":           {"tune", "--out", filepath.Join(empty, "table.json")},
		"give --order any, too":                     {"bench", "collective", "--algorithm", "double-tree"},
		`unknown algorithm "fast"`:                  {"bench", "collective", "--algorithm", "fast"},
		"--segment needs --algorithm":               {"bench", "collective", "--segment", "64K"},
		"--segment: ":                               {"bench", "collective", "--algorithm", "ring", "--segment", "few"},
		"how an allreduce is done, not":             {"bench", "collective", "allgather", "--algorithm", "ring"},
		"these ranks cannot do it":                  {"bench", "collective", "--transport", "inproc", "--algorithm", "hierarchical", "--order", "any"},
		"--order must be ring or any, not \"up\"":   {"tune", "--order", "up"},
		"one rank has nothing to exchange":          {"tune", "--workers", "1"},
		"-b must be at least 4":                     {"tune", "-b", "1"},
		"GB of its memory: lower -e or --workers":   {"tune", "-e", "1000000G"},
		"--workers must be from 1 to 256":           {"tune", "--workers", "1000"},
		"--tune is empty":                           {"train", "../../examples/mnist.cfg", "--tune", ""},
		"--order must be ring or any, not \"none\"": {"train", "../../examples/mnist.cfg", "--order", "none"},
		"no-such-file":                              {"bench", "collective", "--transport", "inproc", "--tune", "no-such-file"},
	} {
		code, _, stderr := result(args...)
		require.Equal(t, 2, code, "%v: %s", args, stderr)
		require.Contains(t, stderr, want)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "before anything starts: %s", stderr)
	}
}

// Training with --order any gives all workers the same weights, again in a second run,
// and the output names the order.
func TestTrainAnyOrder(t *testing.T) {
	var hashes []string
	for range 2 {
		dir := t.TempDir()
		out, stderr, code := cached(t, dir, "train", "../../examples/mnist.cfg", "--workers", "3", "--transport", "tcp", "--order", "any", "--steps", "3", "--out", dir, "--json")
		require.Zero(t, code, stderr)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		var last struct {
			Plan string
			Hash string `json:"weights_sha256"`
		}
		require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &last))
		require.NotEmpty(t, last.Plan)
		hashes = append(hashes, last.Hash)
		saved, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
		require.NoError(t, err)
		require.Contains(t, string(saved[:min(len(saved), 20_000)]), `"plan_digest":"`)
	}
	require.Equal(t, hashes[0], hashes[1])
}
