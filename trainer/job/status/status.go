package status

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/query"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/launch"
	"github.com/ringtrain/ringtrain/trainer/trace"
)

// How long observers wait.
const (
	// ViewTime is how long the View may take to arrive after the members are known.
	ViewTime = 1500 * time.Millisecond
	// answerTime is how long a worker may take to answer. A suspended one never does.
	answerTime = 2 * time.Second
)

// Read returns what the job watched by w is doing, from gossip and from the answers that
// ranks give within two seconds. job is what this machine knows about it.
func Read(ctx context.Context, w *cluster.Watcher, job Job) (*Status, error) {
	patient, cancel := context.WithTimeout(ctx, ViewTime)
	v, err := w.View(patient)
	cancel()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		v = collective.View{} // there is none yet
	}
	s := newStatus(v, query.NewRoll(v, w.Members()), askAll(ctx, w, v, job), job)
	return s, ctx.Err()
}

// A Status is what a job is doing.
type Status struct {
	Job   string       `json:"job,omitempty"` // "" before the first View
	Epoch uint64       `json:"epoch"`
	Size  int          `json:"size"`
	Step  uint64       `json:"step"` // of the newest call of any rank
	Ranks []Rank       `json:"ranks"`
	Chain *trace.Chain `json:"chain"` // which rank waits for which; null if none waits noticeably
}

// A Rank is what one rank of a job is doing.
type Rank struct {
	Rank    int            `json:"rank"`
	Name    string         `json:"name"`
	Node    string         `json:"node"`
	Alive   bool           `json:"alive"`             // according to gossip
	Silent  string         `json:"silent,omitempty"`  // why step, call, waiting and calls are missing
	Stopped bool           `json:"stopped,omitempty"` // its process runs on this machine and is suspended
	PID     int            `json:"pid,omitempty"`
	Step    uint64         `json:"step"`
	Call    *trace.Call    `json:"call"`    // in progress, or null
	Waiting *trace.Waiting `json:"waiting"` // or null
	Skew    trace.Skew     `json:"skew"`    // over the calls of all records
	Calls   []trace.Call   `json:"calls,omitempty"`

	Record *trace.Record `json:"-"` // nil if it did not answer, or has no group
}

// askAll returns the answer of each rank; nil if none came in time. It does not ask
// workers of this machine that are dead or suspended.
func askAll(ctx context.Context, w *cluster.Watcher, v collective.View, job Job) []*crew.RankAnswer {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var able []collective.Member
	var ranks []int
	for r, m := range v.Members {
		if _, s := job.State(m.Node, m.Local); s != launch.Stopped && s != launch.Dead {
			able, ranks = append(able, m), append(ranks, r)
		}
	}
	answers := make([]*crew.RankAnswer, v.Size())
	for i, text := range query.Ask(ctx, w, able, []byte(crew.AskRecord)) {
		var answer crew.RankAnswer
		if text != nil && json.Unmarshal(text, &answer) == nil {
			answers[ranks[i]] = &answer
		}
	}
	return answers
}

// newStatus combines what gossip and the ranks report.
func newStatus(v collective.View, roll query.Roll, answers []*crew.RankAnswer, job Job) *Status {
	s := &Status{Job: roll.Job, Epoch: v.Epoch, Size: v.Size(), Ranks: []Rank{}}
	records := make([]*trace.Record, v.Size())
	for r, m := range v.Members {
		one := Rank{Rank: r, Name: m.Name, Node: m.Node, Alive: roll.Members[r].Alive}
		answer := answers[r]
		switch {
		case answer == nil:
			one.Silent, one.Stopped, one.PID = silence(m, one.Alive, job)
		case answer.Record == nil:
			one.Silent, one.PID = "it has no group yet", answer.PID
		default:
			one.PID, one.Record = answer.PID, answer.Record
			one.Call, one.Waiting = answer.Record.InProgress(), answer.Record.Waiting
			if n := len(answer.Record.Calls); n > 0 {
				one.Step = answer.Record.Calls[n-1].Step
			}
			s.Step = max(s.Step, one.Step)
			records[r] = answer.Record
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

// silence says why a rank does not answer. Gossip cannot distinguish suspended, dead and
// unreachable processes; the machine of the process can.
func silence(m collective.Member, alive bool, job Job) (why string, stopped bool, pid int) {
	pid, s := job.State(m.Node, m.Local)
	switch {
	case s == launch.Stopped:
		return fmt.Sprintf("stopped: process %d is suspended; kill -CONT %d resumes it", pid, pid), true, pid
	case s == launch.Dead:
		return fmt.Sprintf("dead: process %d has ended", pid), false, 0
	case s == launch.Alive:
		return fmt.Sprintf("no answer within %v, though process %d is running", answerTime, pid), false, pid
	case !alive:
		return fmt.Sprintf("no answer, and gossip considers it dead: stopped, dead or unreachable; check on %s", m.Node), false, 0
	}
	return fmt.Sprintf("no answer within %v: stopped, hanging or unreachable; check on %s", answerTime, m.Node), false, 0
}
