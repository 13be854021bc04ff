package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/status"
)

func strategyCommand(a *app) *cobra.Command {
	var f membersFlags
	cmd := &cobra.Command{
		Use:   "strategy NAME [HOST:PORT[,HOST:PORT...] | CLUSTER] [flags]",
		Short: "Switch a running job to another strategy",
		Long: `Switch a running job to the strategy NAME: ` + strings.Join(job.Switchable(), " or ") + `. All workers switch after the same step.
No step is lost, and the weights have the same bits as without the switch. The command waits
until it is done.

` + whichJob + `

A job with ps-async, ps-peers, --quorum, --straggler-timeout, local-sgd, diloco, --compress or
GPUs cannot switch. To switch at a given step, use train --switch.

Exit codes: 0 done, 1 not switched, 2 wrong usage, 130 stopped by Ctrl-C.`,
		Example:   "  ringtrain strategy allreduce\n  ringtrain strategy ps-sync ringtrain-1a2b3c4d\n  ringtrain strategy allreduce 10.0.0.1:7946 --key-file job.key",
		ValidArgs: job.Switchable(),
		Args: func(_ *cobra.Command, args []string) error {
			names := strings.Join(job.Switchable(), ", ")
			switch {
			case len(args) == 0:
				return usagef("strategy needs a NAME, one of %s, before the job", names)
			case !slices.Contains(job.Switchable(), args[0]):
				return usagef("a running job cannot switch to %q: give one of %s, before the job", args[0], names)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.observe(cmd.Context(), args[1:], func(ctx context.Context, w *cluster.Watcher, job status.Job) error {
				return f.switchTo(ctx, a, w, job, args[0])
			})
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

// switchTo asks a job to switch to a strategy, and says when it has.
func (f *membersFlags) switchTo(ctx context.Context, a *app, w *cluster.Watcher, j status.Job, strategy string) error {
	done, err := status.Switch(ctx, w, j, strategy)
	switch {
	case err != nil:
		return err
	case f.json:
		return a.writeJSON(done)
	case done.From == strategy:
		_, err = fmt.Fprintf(a.stdout, "the job has used %s since step %d\n", strategy, done.Steps)
	default:
		_, err = fmt.Fprintf(a.stdout, "switched from %s to %s after step %d\n", done.From, strategy, done.Steps)
	}
	return err
}
