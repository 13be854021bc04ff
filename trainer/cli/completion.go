package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/device"
	"github.com/ringtrain/ringtrain/trainer/job/tuned"
)

// complete tells the shell the possible values of flags, and which arguments are config
// files.
func complete(root *cobra.Command, c *catalog.Catalog) {
	values := map[string][]string{
		"transport":  crew.Transports(),
		"reduce":     {"mean", "sum", "total"},
		"compress":   {"none", "bf16", "fp16", "int8", "topk:"},
		"sparse":     {"auto", "on", "off"},
		"strategy":   job.Strategies(),
		"servers":    {job.Colocated},
		"stale":      {"drop", "damp"},
		"order":      {"ring", "any"},
		"tune":       {tuned.Auto, tuned.Off},
		"device":     {device.Auto, device.CPU, device.CUDA, device.CUDA + ":"},
		"nccl":       {"auto", "must", "off"},
		"graphs":     {device.GraphsAuto, device.GraphsWhole, device.GraphsApart, device.GraphsOff},
		"data":       dataNames(c, func(k catalog.DataKind) bool { return k.Train != nil }),
		"log-style":  slices.Sorted(maps.Keys(logStyles)),
		"log-level":  {"debug", "info", "warn", "error"},
		"store-sync": {"always", "1s"},
		"type":       {"float64", "float32", "bytes"},
	}
	for _, cmd := range append(root.Commands(), nested(root)...) {
		for flag, choice := range values {
			if flag == "strategy" && cmd.Name() == "estimate" {
				choice = slices.DeleteFunc(slices.Clone(choice), func(name string) bool { return strings.HasPrefix(name, "ps-") })
			}
			if cmd.Flags().Lookup(flag) != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(choice, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)) // fails for a flag that is not there
			}
		}
		if cmd.Annotations[readsConfig] != "" {
			cmd.ValidArgsFunction = cobra.FixedCompletions([]string{"cfg"}, cobra.ShellCompDirectiveFilterFileExt)
		}
	}
}

// nested returns the commands below those of root.
func nested(root *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	for _, cmd := range root.Commands() {
		out = append(out, cmd.Commands()...)
	}
	return out
}
