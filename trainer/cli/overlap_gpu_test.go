//go:build gpu && cgo && linux

package cli_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// If gradients leave a GPU during the backward pass, the weights equal those of a
// training where they leave after it, with two and four processes, however steps are
// launched. The plan reports the buckets.
func TestGPUOverlap(t *testing.T) {
	const overlaps = "; gradients leave in 6 buckets of 40 to 100352 bytes during the backward pass"
	for workers, ways := range map[string][]struct{ args, plan string }{
		"2": {
			{"--graphs whole --steps-per-launch 2", "each step is a graph" + overlaps},
			{"--graphs apart", "before the sum and one after it"},
			{"--graphs off", "in an order of its own" + overlaps},
		},
		"4": {{"", "each step is a graph" + overlaps}},
	} {
		args := fewSteps(t, "--workers", workers, "--device", "cuda", "--share-gpu")
		whole, _ := trainOnGPUs(t, args...)
		want := whole[len(whole)-1]
		require.NotContains(t, want.Plan, "buckets", "this network is smaller than a bucket")
		for _, way := range ways {
			got, _ := trainOnGPUs(t, append(append(args, "--bucket", "1"), strings.Fields(way.args)...)...)
			last := got[len(got)-1]
			require.Equal(t, want.Weights, last.Weights, way.args)
			require.True(t, strings.HasSuffix(last.Plan, way.plan), last.Plan)
		}
	}
}

// The same holds for two machines with a launcher each, and for micro-batches.
func TestGPUOverlapOfMachines(t *testing.T) {
	alone, _ := trainOnGPUs(t, fewSteps(t, "--workers", "4", "--device", "cuda", "--share-gpu", "--accumulate", "2")...)
	addr := freeAddr(t)
	job := fewSteps(t, "--workers", "2", "--nodes", "2", "--device", "cuda", "--share-gpu", "--accumulate", "2", "--bucket", "1", "--cluster", t.Name())
	first, second := onGPUs(t, append(job, "--bind", addr)), onGPUs(t, append(job, "--join", addr))
	var out, errs [2]bytes.Buffer
	for i, cmd := range []*exec.Cmd{first, second} {
		cmd.Stdout, cmd.Stderr = &out[i], &errs[i]
		require.NoError(t, cmd.Start())
	}
	require.NoError(t, first.Wait(), "%s", &errs[0])
	require.NoError(t, second.Wait(), "%s", &errs[1])
	for i := range out {
		all := events(t, out[i].Bytes())
		last := all[len(all)-1]
		require.Equal(t, 4, last.Workers)
		require.Equal(t, alone[len(alone)-1].Weights, last.Weights)
		require.Contains(t, last.Plan, "; gradients leave in 6 buckets")
	}
}
