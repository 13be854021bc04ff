package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// gpu-overlap.sh keeps the best round of each way, and detects weights that differ. Here a
// script replaces ringtrain and prints the events of a run. Its step times vary from run
// to run.
func TestOverlapKeepsTheBestRound(t *testing.T) {
	script, err := filepath.Abs("../../gpu-overlap.sh")
	require.NoError(t, err)
	for sum, want := range map[string]string{
		"feed":  "| whole | 10.000 | 3.000 | 0.30 | the plan of 1048576 |\n| off | 12.000 | 4.000 | 0.33 | the plan of 1048576 |\n",
		"sum$n": "\nwith `--graphs whole` the weights of the two ways differ\n",
	} {
		dir := t.TempDir()
		program := filepath.Join(dir, "ringtrain")
		require.NoError(t, os.WriteFile(program, []byte(`#!/bin/bash
while [[ $1 != --bucket ]]; do shift; done
n=$(wc -l 2>/dev/null <"`+dir+`/runs")
echo run >>"`+dir+`/runs"
ms=$((10 + n * 5 % 12))
if (($2 == 1048576)); then ms=$(((ms - 5) / 2)); fi
echo "{\"event\":\"step\",\"step\":50,\"loss\":1,\"seconds\":1.5,\"compute_ms\":3}"
awk -v ms=$ms 'BEGIN { printf "{\"event\":\"step\",\"step\":150,\"loss\":1,\"seconds\":%.6f,\"compute_ms\":3}\n", 1.5 + ms / 10 }'
echo "{\"event\":\"result\",\"steps\":150,\"weights_sha256\":\"`+sum+`\",\"plan\":\"the plan of $2\"}"
`), 0o755))
		out, err := exec.Command(script, program).Output()
		require.Contains(t, string(out), want)
		if sum == "feed" {
			require.NoError(t, err)
		} else {
			require.Error(t, err)
		}
	}
}
