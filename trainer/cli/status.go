package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/query"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/launch"
	"github.com/ringtrain/ringtrain/trainer/trace"
)

// answerTime is how long a worker may take to answer "status". Who is stopped
// never does.
const answerTime = 2 * time.Second

// statusFlags are the flags of "status".
type statusFlags struct {
	membersFlags
	calls int
}

// jobStatus is what a job does.
type jobStatus struct {
	Job   string       `json:"job,omitempty"` // "" before the first View
	Epoch uint64       `json:"epoch"`
	Size  int          `json:"size"`
	Step  uint64       `json:"step"` // of the newest call of any rank
	Ranks []rankStatus `json:"ranks"`
	Chain *trace.Chain `json:"chain"` // who waits for whom, null if nobody does noticeably
}

// rankStatus is what one rank does.
type rankStatus struct {
	Rank    int            `json:"rank"`
	Name    string         `json:"name"`
	Node    string         `json:"node"`
	Alive   bool           `json:"alive"`             // gossip believes so
	Silent  string         `json:"silent,omitempty"`  // why there is nothing of what follows but skew
	Stopped bool           `json:"stopped,omitempty"` // its process is suspended, and one of this machine
	PID     int            `json:"pid,omitempty"`
	Step    uint64         `json:"step"`
	Call    *trace.Call    `json:"call"`    // in progress, or null
	Waiting *trace.Waiting `json:"waiting"` // or null
	Skew    trace.Skew     `json:"skew"`    // over the calls of all records
	Calls   []trace.Call   `json:"calls,omitempty"`

	record *trace.Record
}

func (a *app) statusCommand() *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status [HOST:PORT[,HOST:PORT...] | CLUSTER] [flags]",
		Short: "Show what a job does, and who waits for whom",
		Long: `Show what each rank of a job does: its step, its call in progress and for how long, and
whom it waits for. If a job hangs, the last line names the chain of who waits for whom, and
its root. This command only watches, and the job does not wait for it.

` + whichJob + `

LATE and SLOW are for how long others have waited for a rank in the last 64 calls: because
it made calls later than they did, and because it was slow to move data in them.

Exit codes: 0 done, 1 nobody answered, 2 wrong usage, 130 stopped by Ctrl-C.`,
		Example: "  ringtrain status\n  ringtrain status ringtrain-1a2b3c4d --calls 5\n  ringtrain status 10.0.0.1:7946 --key-file job.key",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if ctx == nil {
				ctx = context.Background()
			}
			return a.status(ctx, args, f)
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.json, "json", false, "as one JSON object")
	flags.IntVar(&f.calls, "calls", 0, "show also the last calls of each rank, so many")
	return cmd
}

// status is the whole of "status".
func (a *app) status(ctx context.Context, args []string, f statusFlags) error {
	if f.calls < 0 || f.calls > collective.FlightCalls {
		return usagef("--calls must be 0 to %d", collective.FlightCalls)
	}
	return untilSignal(ctx, func(ctx context.Context) error {
		job, c, err := f.find(ctx, args)
		if err != nil {
			return usage(err)
		}
		return a.inquire(ctx, job, c, f)
	})
}

// inquire asks every rank, and shows what comes.
func (a *app) inquire(ctx context.Context, job found, c cluster.Config, f statusFlags) (err error) {
	w, err := cluster.Watch(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := answered(ctx, w, job, c.Join, f.timeout); err != nil {
		return err
	}
	patient, cancel := context.WithTimeout(ctx, viewTime)
	v, err := w.View(patient)
	cancel()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		v = collective.View{} // there is none yet
	}
	answers := askAll(ctx, w, v, job)
	s := newJobStatus(v, query.NewRoll(v, w.Members()), answers, job)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.keep(f.calls)
	if f.json {
		return a.writeJSON(s)
	}
	return s.write(a.stdout)
}

// askAll is the answer of each rank, nil where none came in time. Those that are
// known to be unable to answer are not asked.
func askAll(ctx context.Context, w *cluster.Watcher, v collective.View, job found) []*crew.RankAnswer {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var able []collective.Member
	var ranks []int
	for r, m := range v.Members {
		if _, s := job.state(m.Node, m.Local); s != launch.Stopped && s != launch.Dead {
			able, ranks = append(able, m), append(ranks, r)
		}
	}
	answers := make([]*crew.RankAnswer, v.Size())
	for i, text := range query.Ask(ctx, w, able, []byte(crew.AskRecord)) {
		var said crew.RankAnswer
		if text != nil && json.Unmarshal(text, &said) == nil {
			answers[ranks[i]] = &said
		}
	}
	return answers
}

// newJobStatus puts together what gossip and the ranks say.
func newJobStatus(v collective.View, who query.Roll, answers []*crew.RankAnswer, job found) *jobStatus {
	s := &jobStatus{Job: who.Job, Epoch: v.Epoch, Size: v.Size(), Ranks: []rankStatus{}}
	records := make([]*trace.Record, v.Size())
	for r, m := range v.Members {
		one := rankStatus{Rank: r, Name: m.Name, Node: m.Node, Alive: who.Members[r].Alive}
		said := answers[r]
		switch {
		case said == nil:
			one.Silent, one.Stopped, one.PID = silence(m, one.Alive, job)
		case said.Record == nil:
			one.Silent, one.PID = "it has no group yet", said.PID
		default:
			one.PID, one.record = said.PID, said.Record
			one.Call, one.Waiting = said.Record.InProgress(), said.Record.Waiting
			if n := len(said.Record.Calls); n > 0 {
				one.Step = said.Record.Calls[n-1].Step
			}
			s.Step = max(s.Step, one.Step)
			records[r] = said.Record
		}
		s.Ranks = append(s.Ranks, one)
	}
	for r, skew := range trace.Skews(records) {
		s.Ranks[r].Skew = skew
	}
	s.Chain = trace.Chains(records, func(r int) string {
		if r < len(s.Ranks) {
			return s.Ranks[r].Silent
		}
		return "it is not in the view"
	})
	return s
}

// silence says why a rank does not answer. What gossip has given up may be
// stopped as well as dead: only its own machine can tell.
func silence(m collective.Member, alive bool, job found) (why string, stopped bool, pid int) {
	pid, s := job.state(m.Node, m.Local)
	switch {
	case s == launch.Stopped:
		return fmt.Sprintf("stopped: process %d is suspended; kill -CONT %d resumes it", pid, pid), true, pid
	case s == launch.Dead:
		return fmt.Sprintf("dead: process %d has ended", pid), false, 0
	case s == launch.Alive:
		return fmt.Sprintf("no answer within %v, though process %d is running", answerTime, pid), false, pid
	case !alive:
		return fmt.Sprintf("no answer, and gossip has given it up: stopped, dead or cut off; see on %s", m.Node), false, 0
	}
	return fmt.Sprintf("no answer within %v: stopped, hanging or cut off; see on %s", answerTime, m.Node), false, 0
}

// keep keeps the last calls of each rank.
func (s *jobStatus) keep(calls int) {
	for i := range s.Ranks {
		if r := s.Ranks[i].record; r != nil && calls > 0 {
			s.Ranks[i].Calls = r.Calls[max(0, len(r.Calls)-calls):]
		}
	}
}

// write shows the status as a table.
func (s *jobStatus) write(w io.Writer) error {
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
		if r.record != nil {
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
		if err := r.writeCalls(w); err != nil {
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

// writeCalls shows the last calls of a rank, the newest first.
func (r *rankStatus) writeCalls(w io.Writer) error {
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
