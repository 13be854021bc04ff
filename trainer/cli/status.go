package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/job/status"
	"github.com/ringtrain/ringtrain/trainer/trace"
)

// statusFlags are the flags of "status".
type statusFlags struct {
	membersFlags
	calls int
}

func statusCommand(a *app) *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status [HOST:PORT[,HOST:PORT...] | CLUSTER] [flags]",
		Short: "Show what each rank of a job is doing, and which rank it waits for",
		Long: `Show what each rank of a job is doing: its step, the call in progress and its duration so
far, and the rank that it waits for. If a job hangs, the last line follows these waits to the rank
that causes them. This command only watches, and the job does not wait for it.

` + whichJob + `

LATE and SLOW say how long others waited for a rank in the last 64 calls: LATE because it
made calls later than they did, SLOW because it was slow to move data in them.

Exit codes: 0 done, 1 no answer, 2 wrong usage, 130 stopped by Ctrl-C.`,
		Example: "  ringtrain status\n  ringtrain status ringtrain-1a2b3c4d --calls 5\n  ringtrain status 10.0.0.1:7946 --key-file job.key",
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.calls < 0 || f.calls > collective.FlightCalls {
				return usagef("--calls must be from 0 to %d, not %d", collective.FlightCalls, f.calls)
			}
			return f.observe(cmd.Context(), args, func(ctx context.Context, w *cluster.Watcher, job status.Job) error {
				return a.status(ctx, w, job, f)
			})
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
	flags.IntVar(&f.calls, "calls", 0, "also show the last `N` calls of each rank")
	return cmd
}

// status asks every rank and shows the answers.
func (a *app) status(ctx context.Context, w *cluster.Watcher, job status.Job, f statusFlags) error {
	s, err := status.Read(ctx, w, job)
	if err != nil {
		return err
	}
	keepCalls(s, f.calls)
	if f.json {
		return a.writeJSON(s)
	}
	return writeStatus(a.stdout, s)
}

// keepCalls keeps the last calls of each rank.
func keepCalls(s *status.Status, calls int) {
	for i := range s.Ranks {
		if r := s.Ranks[i].Record; r != nil && calls > 0 {
			s.Ranks[i].Calls = r.Calls[max(0, len(r.Calls)-calls):]
		}
	}
}

// writeStatus writes a status as a table.
func writeStatus(w io.Writer, s *status.Status) error {
	if s.Job == "" {
		_, err := fmt.Fprintln(w, "no view yet: the job waits for somebody (ringtrain members shows who is there)")
		return err
	}
	fmt.Fprintf(w, "job %s, epoch %d, %d ranks, step %d\n", s.Job, s.Epoch, s.Size, s.Step)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "rank\tname\tstep\tlate\tslow\tcall in progress\tfor\twaits for")
	for _, r := range s.Ranks {
		step, call, since, whom := "-", "-", "-", "-"
		switch {
		case r.Silent != "":
			call = r.Silent
		case r.Call != nil:
			call, since = fmt.Sprintf("%s #%d", r.Call.Call, r.Call.Seq), trace.Span(r.Call.TookMs)
		}
		if r.Record != nil {
			step = fmt.Sprint(r.Step)
		}
		if r.Waiting != nil {
			whom = fmt.Sprintf("rank %d, %s, %s", r.Waiting.Rank, r.Waiting.Cause, trace.Span(r.Waiting.ForMs))
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Rank, r.Name, step, trace.Span(r.Skew.LateMs), trace.Span(r.Skew.SlowMs), call, since, whom)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range s.Ranks {
		if err := writeCalls(w, r); err != nil {
			return err
		}
	}
	if s.Chain == nil {
		return nil
	}
	ranks := make([]string, len(s.Chain.Ranks))
	for i, r := range s.Chain.Ranks {
		ranks[i] = fmt.Sprint(r)
	}
	_, err := fmt.Fprintf(w, "who waits for whom: rank %s; rank %s: %s\n", strings.Join(ranks, " for rank "), ranks[len(ranks)-1], s.Chain.Why)
	return err
}

// writeCalls writes the last calls of a rank, newest first.
func writeCalls(w io.Writer, r status.Rank) error {
	if len(r.Calls) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\nrank %d (%s), newest call first:\n", r.Rank, r.Name)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "call\tstep\tbegan\ttook\twaited for")
	for _, c := range slices.Backward(r.Calls) {
		took, waits := trace.Span(c.TookMs), []string{}
		if !c.Done {
			took += " so far"
		}
		for _, wait := range c.Waits {
			waits = append(waits, fmt.Sprintf("rank %d: %s late, %s slow", wait.Rank, trace.Span(wait.LateMs), trace.Span(wait.SlowMs)))
		}
		if c.Error != "" {
			waits = append(waits, c.Error)
		}
		fmt.Fprintf(t, "%s #%d\t%d\t%s\t%s\t%s\n", c.Call, c.Seq, c.Step, c.Began.Format("15:04:05.000000"), took, strings.Join(waits, "; "))
	}
	return t.Flush()
}
