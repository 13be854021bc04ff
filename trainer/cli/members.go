package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/query"
	"github.com/ringtrain/ringtrain/trainer/job/status"
)

// Patience of "members" and "status".
const (
	// lookTime is the interval at which gossip is read.
	lookTime = 100 * time.Millisecond
)

// membersFlags are the flags of "members".
type membersFlags struct {
	all     *pflag.FlagSet // of the command
	cluster string
	keyFile string
	timeout time.Duration
	json    bool
	watch   bool
}

func membersCommand(a *app) *cobra.Command {
	var f membersFlags
	cmd := &cobra.Command{
		Use:   "members [HOST:PORT[,HOST:PORT...] | CLUSTER] [flags]",
		Short: "Show the members of a job",
		Long: `Show the members of a job: the processes that gossip sees, and the view that they have
agreed on. This command only watches, and the job does not wait for it.

` + whichJob + `

Exit codes: 0 done, 1 no answer, 2 wrong usage, 130 stopped by Ctrl-C.`,
		Example: "  ringtrain members\n  ringtrain members 10.0.0.1:7946 --key-file job.key\n  ringtrain members 10.0.0.1:7946 --watch --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.observe(cmd.Context(), args, func(ctx context.Context, w *cluster.Watcher, job status.Job) error {
				return a.members(ctx, w, job, f)
			})
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print one JSON object; with --watch, one per line")
	flags.BoolVar(&f.watch, "watch", false, "keep running and show every change, until Ctrl-C")
	return cmd
}

// whichJob holds the flags with which members and status find a job.
const whichJob = `If you run only one job on this machine, you need no arguments. If there are several, give
CLUSTER, the name on the first line of train. For a job on other machines, give HOST:PORT,
the gossip address of one of its processes, and the --cluster and --key-file of train.`

// register adds the flags that members and status share.
func (f *membersFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.all = flags
	flags.StringVar(&f.cluster, "cluster", "", "`NAME` of the job's cluster (default the listed job's, else ringtrain)")
	flags.StringVar(&f.keyFile, "key-file", "", "`FILE` with the key of the job (default the listed job's, else $"+cluster.EnvKeyFile+")")
	flags.DurationVar(&f.timeout, "timeout", 5*time.Second, "wait `TIME` for an answer")
}

// observe finds a job, joins its gossip and calls do, until that returns or a signal comes.
func (f *membersFlags) observe(ctx context.Context, args []string, do func(context.Context, *cluster.Watcher, status.Job) error) error {
	return untilSignal(ctx, func(ctx context.Context) (err error) {
		if f.timeout <= 0 {
			return usagef("--timeout must be greater than 0, not %v", f.timeout)
		}
		if err := checkEmpty(f.all, "cluster", "key-file"); err != nil {
			return usage(err)
		}
		job, c, err := status.Locate(ctx, args, f.cluster, f.keyFile)
		if err != nil {
			return usage(err)
		}
		w, err := cluster.Watch(ctx, c)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.Close()) }()
		if err := status.Meet(ctx, w, job, f.timeout); err != nil {
			return err
		}
		return do(ctx, w, job)
	})
}

// members shows the members, once or whenever they change.
func (a *app) members(ctx context.Context, w *cluster.Watcher, job status.Job, f membersFlags) error {
	var last query.Roll
	for patience := status.ViewTime; ; patience = lookTime {
		r := query.Read(ctx, w, patience)
		job.Inspect(&r)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !reflect.DeepEqual(r, last) {
			if err := a.showRoll(r, f.json); err != nil {
				return err
			}
			last = r
		}
		if !f.watch {
			return nil
		}
		select {
		case <-time.After(lookTime):
		case <-ctx.Done():
		}
	}
}

func (a *app) showRoll(r query.Roll, asJSON bool) error {
	if asJSON {
		return a.writeJSON(r)
	}
	return writeRoll(a.stdout, r)
}

// writeRoll writes the members as a table.
func writeRoll(w io.Writer, r query.Roll) error {
	if r.Job == "" {
		fmt.Fprintln(w, "no view yet: the job waits for somebody")
	} else {
		fmt.Fprintf(w, "job %s, epoch %d, %d ranks\n", r.Job, r.Epoch, r.Size)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "rank\tname\tnode\tlocal\trole\talive\taddresses")
	for _, m := range r.Members {
		rank, alive := "-", "yes"
		if m.Rank != nil {
			rank = fmt.Sprint(*m.Rank)
		}
		switch {
		case m.Stopped:
			alive = "stopped"
		case !m.Alive:
			alive = "no"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", rank, m.Name, m.Node, m.Local, m.Role, alive, strings.Join(m.Addrs, " "))
	}
	return t.Flush()
}
