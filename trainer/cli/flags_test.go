package cli

import (
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/job"
)

// Every flag of train sets its own field of the Spec and no other.
func TestEveryFlagSetsItsField(t *testing.T) {
	table := map[string]struct {
		value string
		set   func(*trainFlags)
	}{
		"workers":             {"3", func(f *trainFlags) { f.Workers = 3 }},
		"steps":               {"7", func(f *trainFlags) { f.Steps = 7 }},
		"until":               {"loss=.1", func(f *trainFlags) { f.Until = "loss=.1" }},
		"batch":               {"16", func(f *trainFlags) { f.Batch = 16 }},
		"accumulate":          {"4", func(f *trainFlags) { f.Accumulate = 4 }},
		"reduce":              {"sum", func(f *trainFlags) { f.Gradients.Reduce = "sum" }},
		"strategy":            {"other", func(f *trainFlags) { f.Strategy = "other" }},
		"servers":             {"2", func(f *trainFlags) { f.Gradients.Servers = "2" }},
		"quorum":              {"2", func(f *trainFlags) { f.Gradients.Asynchrony.Quorum = 2 }},
		"straggler-timeout":   {"200ms", func(f *trainFlags) { f.Gradients.Asynchrony.Timeout = 200 * time.Millisecond }},
		"max-staleness":       {"3", func(f *trainFlags) { f.Gradients.Asynchrony.MaxStaleness = "3" }},
		"stale":               {"damp", func(f *trainFlags) { f.Gradients.Asynchrony.Stale = "damp" }},
		"switch":              {"5:ps-sync", func(f *trainFlags) { f.Gradients.Switch = "5:ps-sync" }},
		"max-restarts":        {"9", func(f *trainFlags) { f.Gradients.Restarts = 9 }},
		"server-dir":          {"d", func(f *trainFlags) { f.Gradients.ServerDir = "d" }},
		"inner-steps":         {"8", func(f *trainFlags) { f.Gradients.Rounds.Steps = 8 }},
		"outer-rate":          {"0.5", func(f *trainFlags) { f.Gradients.Rounds.Rate = .5 }},
		"outer-momentum":      {"0.7", func(f *trainFlags) { f.Gradients.Rounds.Momentum = .7 }},
		"seed":                {"18446744073709551615", func(f *trainFlags) { f.Seed = 1<<64 - 1 }},
		"data":                {"mnist:DIR", func(f *trainFlags) { f.Data = "mnist:DIR" }},
		"out":                 {"run", func(f *trainFlags) { f.Saving.Dir = "run" }},
		"out-fallback":        {"spare", func(f *trainFlags) { f.Saving.Fallback = "spare" }},
		"resume":              {"old", func(f *trainFlags) { f.Saving.Resume = "old" }},
		"init":                {"w.safetensors", func(f *trainFlags) { f.Saving.Init = "w.safetensors" }},
		"checkpoint-every":    {"5", func(f *trainFlags) { f.Saving.Every = 5 }},
		"keep":                {"9", func(f *trainFlags) { f.Saving.Keep = 9 }},
		"force":               {"true", func(f *trainFlags) { f.Saving.Force = true }},
		"require-checkpoint":  {"true", func(f *trainFlags) { f.Saving.Require = true }},
		"nodes":               {"2", func(f *trainFlags) { f.Place.Nodes = 2 }},
		"join":                {"a:1,b:2", func(f *trainFlags) { f.Place.Join = []string{"a:1", "b:2"} }},
		"join-timeout":        {"90s", func(f *trainFlags) { f.Place.JoinTimeout = 90 * time.Second }},
		"rank0":               {"n", func(f *trainFlags) { f.Place.Rank0 = "n" }},
		"bind":                {"10.0.0.1", func(f *trainFlags) { f.Place.Bind = "10.0.0.1" }},
		"cluster":             {"c", func(f *trainFlags) { f.Place.Cluster = "c" }},
		"key-file":            {"k", func(f *trainFlags) { f.Place.KeyFile = "k" }},
		"insecure":            {"true", func(f *trainFlags) { f.Place.Insecure = true }},
		"transport":           {"tcp", func(f *trainFlags) { f.Place.Transport = "tcp" }},
		"streams":             {"4", func(f *trainFlags) { f.Place.Streams = 4 }},
		"order":               {"any", func(f *trainFlags) { f.Order.Order = "any" }},
		"tune":                {"off", func(f *trainFlags) { f.Order.Table = "off" }},
		"compress":            {"bf16", func(f *trainFlags) { f.Gradients.Compress = "bf16" }},
		"sparse":              {"on", func(f *trainFlags) { f.Gradients.Sparse = "on" }},
		"bucket":              {"65536", func(f *trainFlags) { f.Gradients.Bucket = 65536 }},
		"device":              {"cuda:1", func(f *trainFlags) { f.Device.Device = "cuda:1" }},
		"share-gpu":           {"true", func(f *trainFlags) { f.Device.Share = true }},
		"nccl":                {"must", func(f *trainFlags) { f.Device.NCCL = "must" }},
		"graphs":              {"apart", func(f *trainFlags) { f.Graphs.How = "apart" }},
		"steps-per-launch":    {"8", func(f *trainFlags) { f.Graphs.PerLaunch = 8 }},
		"tf32":                {"true", func(f *trainFlags) { f.Products.TF32 = true }},
		"bf16":                {"true", func(f *trainFlags) { f.Products.BF16 = true }},
		"time-products":       {"d", func(f *trainFlags) { f.Products.Timed = "d" }},
		"target":              {"x", func(f *trainFlags) { f.Options.Target = "x" }},
		"holdout":             {"0.3", func(f *trainFlags) { f.Options.Holdout = .3 }},
		"test-data":           {"x.csv", func(f *trainFlags) { f.Options.Test = "x.csv" }},
		"json":                {"true", func(f *trainFlags) { f.json = true }},
		"log-style":           {"ray", func(f *trainFlags) { f.style = "ray" }},
		"trace":               {"d", func(f *trainFlags) { f.Watch.Trace = "d" }},
		"metrics":             {":9400", func(f *trainFlags) { f.Watch.Metrics = ":9400" }},
		"log-level":           {"info", func(f *trainFlags) { f.Watch.LogLevel = "info" }},
		"faithful-accumulate": {"true", func(f *trainFlags) { f.Gradients.Faithful = true }},
	}
	var all trainFlags
	cmd := &cobra.Command{}
	all.register(cmd, catalog.New())
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { require.Contains(t, table, flag.Name, "a flag without a line in this table") })
	for name, c := range table {
		var f trainFlags
		cmd := &cobra.Command{}
		f.register(cmd, catalog.New())
		require.NoError(t, cmd.ParseFlags([]string{"--" + name + "=" + c.value}))
		want := trainFlags{Spec: job.NewSpec(nil, ""), style: "table"}
		c.set(&want)
		require.Equal(t, want, f, name)
	}
}

// A flag with an empty value is probably an unset variable of a script. It is refused
// even if the field may be empty.
func TestEmptyFlagsAreRefused(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--workers=0"}, "--workers must be at least 1"},
		{[]string{"--steps=0"}, "--steps must be at least 1"},
		{[]string{"--batch=0"}, "--batch must be at least 1"},
		{[]string{"--accumulate=0"}, "--accumulate must be at least 1"},
		{[]string{"--bucket=0"}, "--bucket must be at least 1 byte, not 0"},
		{[]string{"--compress="}, "--compress: "},
		{[]string{"--sparse="}, `--sparse must be auto, on or off, not ""`},
		{[]string{"--resume="}, "--resume is empty"},
		{[]string{"--out="}, "--out is empty"},
		{[]string{"--out=a", "--out-fallback="}, "--out-fallback is empty"},
		{[]string{"--out=a", "--checkpoint-every=0"}, "--checkpoint-every must be at least 1"},
		{[]string{"--keep=3"}, "need --out: say where checkpoints go"},
		{[]string{"--until="}, "--until is empty"},
		{[]string{"--until=accuracy"}, "--until: a target must be METRIC=VALUE, such as accuracy=.95, not \"accuracy\""},
		{[]string{"--target="}, "--target is empty"},
		{[]string{"--test-data="}, "--test-data is empty"},
		{[]string{"--holdout=0"}, "--holdout must be greater than 0 and less than 1, not 0"},
		{[]string{"--trace="}, "--trace is empty"},
		{[]string{"--metrics="}, "--metrics must be ADDRESS:PORT"},
		{[]string{"--time-products="}, "--time-products is empty"},
		{[]string{"--strategy=ps-sync", "--quorum=0"}, "--quorum must be at least 1"},
		{[]string{"--strategy=ps-peers", "--quorum=0"}, "--quorum must be at least 1"},
		{[]string{"--strategy=ps-sync", "--straggler-timeout=0s"}, "--straggler-timeout must be longer than 0"},
		{[]string{"--strategy=ps-async", "--max-staleness="}, `--max-staleness must be a number of updates, 0 or more, not ""`},
		{[]string{"--strategy=ps-async", "--stale="}, `--stale must be drop or damp, not ""`},
		{[]string{"--key-file="}, "--key-file is empty"},
		{[]string{"--join="}, "--join is empty"},
		{[]string{"--rank0="}, "--rank0 is empty"},
		{[]string{"--bind="}, "--bind is empty"},
		{[]string{"--cluster="}, "--cluster is empty"},
		{[]string{"--tune="}, "--tune is empty"},
	} {
		var f trainFlags
		cmd := &cobra.Command{}
		f.register(cmd, catalog.New())
		require.NoError(t, cmd.ParseFlags(c.args))
		require.ErrorContains(t, f.check(cmd.Flags()), c.want, "%v", c.args)
	}
	for _, args := range [][]string{nil, {"--out=a", "--keep=0"}, {"--resume=a", "--keep=5"}, {"--compress=none"}, {"--nodes=2", "--join=a:1"}} {
		var f trainFlags
		cmd := &cobra.Command{}
		f.register(cmd, catalog.New())
		require.NoError(t, cmd.ParseFlags(args))
		require.NoError(t, f.check(cmd.Flags()), "%v", args)
	}
}
