package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// Every mistake in the fields of a ScalingRun is an error that names the flag and what to
// give instead. Launch returns it before it does anything.
func TestScalingCheck(t *testing.T) {
	fine := func() *ScalingRun {
		return &ScalingRun{Workers: []int{2, 1, 4}, Trials: 1, Steps: 1, System: "allreduce", Hosts: "local", Transport: "auto"}
	}
	const systems = "--system must be names from allreduce,ps-sync,ps-sync:colocated,local-sgd,diloco,ps-async,ps-peers, or ps-sync:N or ps-async:N for N servers, or ps-peers:Q for a quorum of Q gradients, not "
	netns := func(f *ScalingRun) { f.Hosts = Namespaces }
	require.NoError(t, fine().Check())
	for _, c := range []struct {
		want   string
		change func(f *ScalingRun)
	}{
		{"--workers must include 1: growth and scalability are measured against one worker", func(f *ScalingRun) { f.Workers = nil }},
		{"--workers must include 1: growth and scalability are measured against one worker", func(f *ScalingRun) { f.Workers = []int{2, 4} }},
		{"--workers must be at least 1 each, not 0", func(f *ScalingRun) { f.Workers = []int{1, 0} }},
		{"--workers names a number twice; for more runs of each, use --trials", func(f *ScalingRun) { f.Workers = []int{1, 2, 1} }},
		{"--trials must be at least 1, not 0", func(f *ScalingRun) { f.Trials = 0 }},
		{"--steps must be at least 1, not -1", func(f *ScalingRun) { f.Steps = -1 }},
		{"--force needs --out: name the directory to take over", func(f *ScalingRun) { f.Force = true }},
		{systems + `""`, func(f *ScalingRun) { f.System = "" }},
		{systems + `"gossip"`, func(f *ScalingRun) { f.System = "allreduce,gossip" }},
		{systems + `"allreduce:2"`, func(f *ScalingRun) { f.System = "allreduce:2" }},
		{`--system ps-sync:none: the servers must be colocated or a number of processes from 1 to 1024, not "none"`, func(f *ScalingRun) { f.System = "ps-sync:none" }},
		{`--system ps-sync:: the servers must be colocated or a number of processes from 1 to 1024, not ""`, func(f *ScalingRun) { f.System = "ps-sync:" }},
		{`--system ps-async:0: the servers must be colocated or a number of processes from 1 to 1024, not "0"`, func(f *ScalingRun) { f.System = "ps-async:0" }},
		{`--system ps-peers:0: the quorum must be a number of gradients, at least 1, not "0"`, func(f *ScalingRun) { f.System = "ps-peers:0" }},
		{`--system ps-peers:: the quorum must be a number of gradients, at least 1, not ""`, func(f *ScalingRun) { f.System = "ps-peers:" }},
		{"--system names allreduce twice; for more runs of each, use --trials", func(f *ScalingRun) { f.System = "allreduce,diloco,allreduce" }},
		{`--hosts must be local or netns, not "mars"`, func(f *ScalingRun) { f.Hosts = "mars" }},
		{`--transport must be one of auto, tcp, shm, not "inproc"`, func(f *ScalingRun) { f.Transport = "inproc" }},
		{"--link needs --hosts netns: only there can the links be limited", func(f *ScalingRun) { f.Link = "1gbit" }},
		{"--insecure needs --hosts netns: on this machine alone nothing is encrypted without a key", func(f *ScalingRun) { f.Insecure = true }},
		{"--insecure cannot be combined with --key-file", func(f *ScalingRun) { netns(f); f.Insecure, f.KeyFile = true, "a.key" }},
		{"--transport shm cannot be combined with --hosts netns: the links would carry nothing; use --transport tcp", func(f *ScalingRun) { netns(f); f.Transport = "shm" }},
		{"--evaluate cannot be combined with --compute emulate: emulated workers have no model to evaluate", func(f *ScalingRun) {
			f.Evaluate, f.Compute.Took = true, time.Second
		}},
		{fmt.Sprintf("--hosts netns has room for %d workers and servers, not %d", launch.MaxNodes, launch.MaxNodes+1), func(f *ScalingRun) {
			netns(f)
			f.Workers = []int{1, launch.MaxNodes + 1}
		}},
		{fmt.Sprintf("--hosts netns has room for %d workers and servers, not %d", launch.MaxNodes, launch.MaxNodes+2), func(f *ScalingRun) {
			netns(f)
			f.Workers, f.System = []int{1, launch.MaxNodes - 1}, "allreduce,ps-sync:3"
		}},
	} {
		f := fine()
		c.change(f)
		err := f.Launch(t.Context(), job.Options{}, func(string, string) []string {
			t.Error("a worker is started")
			return nil
		})
		require.EqualError(t, err, c.want)
		var usage *crew.UsageError
		require.ErrorAs(t, err, &usage, c.want)
	}
	f := fine()
	netns(f)
	f.Insecure, f.Link, f.Workers = true, "1gbit", []int{1, launch.MaxNodes}
	require.NoError(t, f.Check())
}
