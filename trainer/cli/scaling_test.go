package cli_test

import (
	"bytes"
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
)

// scaling runs a small "bench scaling" to its end and returns its report.
func scaling(t *testing.T, args ...string) (report bench.Scaling, rows []bench.ScalingRow, stdout, dir string) {
	t.Helper()
	require.NotEmpty(t, smallDir())
	dir = filepath.Join(t.TempDir(), "out")
	cmd := command(t, append([]string{"bench", "scaling", "--data", "mnist:" + smallDir(), "--workers", "1,2", "--steps", "5", "--out", dir}, args...)...)
	temp := t.TempDir()
	cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	require.NoError(t, cmd.Run(), "%s", &err)
	require.Contains(t, err.String(), "trial 1 of 2, allreduce, workers 2: ")
	entries, failed := os.ReadDir(temp)
	require.NoError(t, failed)
	require.Empty(t, entries, "nothing is left")
	text, failed := os.ReadFile(filepath.Join(dir, "scaling.json"))
	require.NoError(t, failed)
	var read struct {
		bench.Scaling
		Rows []bench.ScalingRow
	}
	require.NoError(t, json.Unmarshal(text, &read))
	return read.Scaling, read.Rows, out.String(), dir
}

// Processes train in turn, and the measurements are printed and written to files.
func TestBenchScaling(t *testing.T) {
	report, rows, stdout, dir := scaling(t, "--trials", "2", "--system", "allreduce", "--compute", "emulate:5ms", "--transport", "tcp", "--published", "--training.batch_size", "24")
	require.Len(t, report.Trials, 4)
	require.Equal(t, 24, report.Batch)
	for i, trial := range report.Trials {
		require.Equal(t, 1+i%2, trial.Workers, "trials take turns")
		require.Equal(t, 1+i/2, trial.Trial)
		require.Equal(t, 5, trial.Steps)
		require.GreaterOrEqual(t, trial.Seconds, .025)
		require.GreaterOrEqual(t, trial.Compute, 5.)
		require.InDelta(t, 200*trial.Seconds, trial.Compute+trial.Exchange+trial.Optimizer+trial.Evaluation+trial.Idle, 1e-6, "the parts add up to the step")
		require.Zero(t, trial.Evaluation)
		require.Empty(t, trial.Wire)
		require.Len(t, trial.Sent, trial.Workers)
	}
	require.Zero(t, report.Trials[0].StepSent)
	// Each of two ranks sends half of the gradients twice, and a word.
	require.InDelta(t, 4*report.Params, report.Trials[1].StepSent, .05*4*float64(report.Params))
	require.Greater(t, report.Trials[1].Sent[0], 5*report.Trials[1].StepSent)
	require.Equal(t, []bench.Link{{Rank: 0, Peers: "1", Transport: "tcp"}}, report.Trials[1].Links)
	require.Equal(t, bench.ScalingRows(report.Trials), rows)

	require.Contains(t, stdout, "compute:  emulate:5ms (workers wait")
	require.Regexp(t, `(?m)^system +workers +seconds +ms/step +growth +speedup +scalability\nallreduce +1 +\d`, stdout)
	require.Contains(t, stdout, "\nspacy-ray-nccl       16    248.3 ± 3.6 ", "of --published")
	require.Contains(t, stdout, "workers on one machine, over loopback, no TLS")
	require.Contains(t, stdout, "1 pair of ranks, each over tcp.")
	require.NotContains(t, stdout, "shm")
	table, err := os.ReadFile(filepath.Join(dir, "table.md"))
	require.NoError(t, err)
	var markdown strings.Builder
	report.Published = true
	require.NoError(t, report.Markdown(&markdown))
	require.Equal(t, markdown.String(), string(table))
	require.ElementsMatch(t, []string{"table.md", "scaling.json", "scaling.csv", "runtime.png", "runtime.svg", "speedup.png", "speedup.svg", "scalability.png", "scalability.svg"}, names(t, dir))
	for _, plot := range bench.ScalingPlots() {
		file, err := os.Open(filepath.Join(dir, plot+".png"))
		require.NoError(t, err)
		_, err = png.Decode(file)
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}
}

func names(t *testing.T, dir string) []string {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// Emulated workers exchange exactly as many bytes as workers that compute. With
// --evaluate, evaluations are part of the time.
func TestBenchScalingComputes(t *testing.T) {
	emulated, _, _, _ := scaling(t, "--trials", "2", "--compute", "emulate:1ms", "--config", config(t))
	real, _, stdout, _ := scaling(t, "--trials", "2", "--config", config(t))
	require.Contains(t, stdout, "compute:  real\n")
	require.NotContains(t, stdout, "spacy-ray")
	require.Equal(t, emulated.Trials[1].StepSent, real.Trials[1].StepSent)
	require.Equal(t, emulated.Params, real.Params)
	evaluated, _, _, _ := scaling(t, "--trials", "2", "--evaluate")
	for _, trial := range evaluated.Trials {
		require.Positive(t, trial.Evaluation)
	}
}

// Parameter servers are rows of their own. A server process counts its bytes, too.
func TestBenchScalingServers(t *testing.T) {
	report, rows, stdout, _ := scaling(t, "--trials", "2", "--system", "allreduce,ps-sync:2,ps-sync:colocated", "--compute", "emulate:1ms", "--transport", "tcp")
	require.Len(t, report.Trials, 12)
	require.Len(t, rows, 6)
	for _, trial := range report.Trials {
		servers := 0
		if trial.System == "ps-sync:2" {
			servers = 2
		}
		require.Equal(t, servers, trial.Servers, trial.System)
		require.Len(t, trial.Sent, trial.Workers+servers, trial.System)
		for rank, sent := range trial.Sent {
			if len(trial.Sent) > 1 {
				require.Greater(t, sent, int64(4*report.Params), "%s, rank %d of %d", trial.System, rank, len(trial.Sent))
			}
		}
	}
	arena := 4 * float64(report.Params)
	require.InEpsilon(t, arena, float64(rowOf(t, rows, "ps-sync:2", 1).StepSent), .1, "a worker pushes all gradients")
	require.InEpsilon(t, arena, float64(rowOf(t, rows, "ps-sync:colocated", 2).StepSent), .1, "a worker pushes one half, and gives the other half")
	require.Contains(t, stdout, "- ps-sync:2, 2 workers: 6 pairs of ranks, each over tcp.\n")
}

// rowOf returns the row of a system with this many workers.
func rowOf(t *testing.T, rows []bench.ScalingRow, system string, workers int) bench.ScalingRow {
	t.Helper()
	for _, r := range rows {
		if r.System == system && r.Workers == workers {
			return r
		}
	}
	require.Fail(t, "no such row")
	return bench.ScalingRow{}
}

func TestBenchScalingUsageErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o666))
	taken := filepath.Join(dir, "taken")
	require.NoError(t, os.MkdirAll(filepath.Join(taken, "runtime.svg"), 0o777))
	for _, c := range []struct {
		want string
		args []string
	}{
		{"bench scaling takes only flags, not \"allreduce\"", []string{"allreduce"}},
		{"--workers must be from 1 to 256 each", []string{"--workers", "1,0"}},
		{"--workers must be from 1 to 256 each", []string{"--workers", "1,257"}},
		{"--workers must include 1", []string{"--workers", "2,4"}},
		{"--workers names a number twice", []string{"--workers", "1,2,2"}},
		{"--workers must be whole numbers separated by commas, not \"one\"", []string{"--workers", "one"}},
		{"--trials must be from 1", []string{"--trials", "0"}},
		{"--steps must be at least 1", []string{"--steps", "0"}},
		{`for a quorum of Q gradients, not "gossip"`, []string{"--system", "gossip"}},
		{"--system names allreduce twice", []string{"--system", "allreduce,allreduce"}},
		{"--system ps-sync:0: the servers must be colocated or a number of processes", []string{"--system", "allreduce,ps-sync:0"}},
		{"--hosts must be local or netns, not \"mars\"", []string{"--hosts", "mars"}},
		{"--link needs --hosts netns", []string{"--link", "1gbit"}},
		{`--link: rate must be a number with a unit (bit, kbit, mbit, gbit or tbit) such as 2.5gbit, not "fast"`, []string{"--hosts", "netns", "--link", "fast"}},
		{"--link: rate must be from 10kbit to 1tbit, not \"9999bit\"", []string{"--hosts", "netns", "--link", "9999bit"}},
		{"--link: rate must be from 10kbit to 1tbit, not \"2tbit\"", []string{"--hosts", "netns", "--link", "2tbit"}},
		{"--transport must be one of auto, tcp, shm, not \"inproc\"", []string{"--transport", "inproc"}},
		{"--transport shm cannot be combined with --hosts netns", []string{"--hosts", "netns", "--transport", "shm"}},
		{"has room for 250 workers", []string{"--hosts", "netns", "--workers", "1,251"}},
		{"--insecure needs --hosts netns", []string{"--insecure"}},
		{"cannot be combined with --key-file", []string{"--hosts", "netns", "--insecure", "--key-file", file}},
		{"--compute must be real or emulate:TIME, not \"fast\"", []string{"--compute", "fast"}},
		{"the time of --compute must be one such as 116.7ms", []string{"--compute", "emulate:117"}},
		{"the time of --compute must be one such as 116.7ms", []string{"--compute", "emulate:-1s"}},
		{"the time of --compute must be one such as 116.7ms", []string{"--compute", "emulate:61s"}},
		{"cannot be combined with --compute emulate", []string{"--compute", "emulate:1s", "--evaluate"}},
		{"no such file", []string{"--config", filepath.Join(dir, "none.cfg")}},
		{"no such file", []string{"--key-file", filepath.Join(dir, "none")}},
		{`unknown data "foo"`, []string{"--data", "foo"}},
		{"needs more rows than the data", []string{"--workers", "1,200"}},
		{"--out is empty", []string{"--out", ""}},
		{"--config is empty", []string{"--config", ""}},
		{"--key-file is empty", []string{"--key-file", ""}},
		{"not a directory", []string{"--out", filepath.Join(file, "x")}},
		{"runtime.svg is a directory", []string{"--out", taken}},
		{`did you mean "training"?`, []string{"--trainin.batch_size", "3"}},
	} {
		code, stdout, stderr := result(append([]string{"bench", "scaling"}, c.args...)...)
		require.Equal(t, 2, code, "%v: %s", c.args, stderr)
		require.Contains(t, stderr, c.want, "%v", c.args)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
		require.Empty(t, stdout)
	}
	code, stdout, _ := result("bench", "scaling", "--help")
	require.Zero(t, code)
	require.Contains(t, stdout, "--compute")
}
