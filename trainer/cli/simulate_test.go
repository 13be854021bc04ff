package cli_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
)

// simulate prints tables, or the same as JSON. A fit uses the file of bench scaling.
func TestSimulate(t *testing.T) {
	args := []string{"simulate", "--workers", "2,8", "--link", "1gbit", "--compute", "emulate:20ms", "--system", "allreduce,allreduce:double-tree,ps-sync:2,diloco"}
	code, stdout, stderr := result(args...)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "links:    1 Gbit/s each way, 25µs")
	require.Regexp(t, `(?m)^ps-sync:2 +8 +\d`, stdout)

	code, stdout, stderr = result(append(args, "--json", "--inner-steps", "10", "--cores", "2", "--latency", "1ms", "--model.hidden_width", "8")...)
	require.Zero(t, code, stderr)
	var s bench.Simulation
	require.NoError(t, json.Unmarshal([]byte(stdout), &s))
	require.Equal(t, 784*8+8+8*8+8+8*10+10, s.Params)
	require.Equal(t, 10, s.InnerSteps)
	require.Equal(t, 2, s.Fabric.Cores)
	require.Len(t, s.Rows, 8)
	require.Len(t, s.Methods, 2)
}

func TestSimulateUsageErrors(t *testing.T) {
	for want, args := range map[string][]string{
		"simulate takes only flags":                 {"8"},
		"--compute must be the time":                {"--link", "1gbit"},
		"--compute must be emulate:TIME, such as":   {"--compute", "fast"},
		"--compute must be emulate:TIME":            {"--from", "scaling.json", "--compute", "real"},
		"--latency must be at least 0":              {"--from", "scaling.json", "--latency", "-1ns"},
		"--data has no effect with --from":          {"--from", "scaling.json", "--data", "digits"},
		"--target has no effect with --from":        {"--from", "scaling.json", "--target", "y"},
		"--model.hidden_width has no effect":        {"--from", "scaling.json", "--model.hidden_width", "512"},
		"--link must be the rate":                   {"--compute", "emulate:1s"},
		"--inner-steps must be at least 1":          {"--inner-steps", "0"},
		"--from is empty":                           {"--from", ""},
		"--link is empty":                           {"--from", "scaling.json", "--link", ""},
		"--config is empty":                         {"--from", "scaling.json", "--config", ""},
		"no such file":                              {"--from", filepath.Join(t.TempDir(), "none.json")},
		"--workers must be from 1 to 4096":          {"--compute", "emulate:1s", "--link", "1gbit", "--workers", "4097"},
		`for a quorum of Q gradients, not "gossip"`: {"--compute", "emulate:1s", "--link", "1gbit", "--system", "gossip"},
		"the algorithm must be one of [ring ":       {"--compute", "emulate:1s", "--link", "1gbit", "--system", "allreduce:shared"},
	} {
		code, stdout, stderr := result(append([]string{"simulate"}, args...)...)
		require.Equal(t, 2, code, "%v: %s", args, stderr)
		require.Contains(t, stderr, want, "%v", args)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
		require.Empty(t, stdout)
	}
}
