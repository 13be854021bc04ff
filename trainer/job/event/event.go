package event

import (
	"cmp"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/query"
)

// View is written when the workers have agreed on a view.
type View struct {
	Epoch   uint64   `json:"epoch"`
	Job     string   `json:"job"`
	Members []Member `json:"members"`
	Device  string   `json:"device,omitempty"`  // what the workers of this machine compute on
	Cluster string   `json:"cluster,omitempty"` // the job's name, for members and status
	Gossip  string   `json:"gossip,omitempty"`  // ADDRESS:PORT of this machine's first worker, for members and status

	Transport string `json:"transport,omitempty"` // of bench collective on GPUs
}

// Member is one worker of a View.
type Member struct {
	Rank int    `json:"rank"`
	Name string `json:"name"`
	Node string `json:"node"`
	Addr string `json:"addr,omitempty"`
}

// Step is one step. Loss is the mean over the rows of all workers.
type Step struct {
	Step       int     `json:"step"`
	Loss       float64 `json:"loss"`
	Samples    int     `json:"samples"`
	Seconds    float64 `json:"seconds"` // since the first step began
	ComputeMs  float64 `json:"compute_ms"`
	ExchangeMs float64 `json:"exchange_ms"`
	UpdateMs   float64 `json:"update_ms"`
	WireBytes  int     `json:"wire_bytes"`        // of gradients, sent by this worker
	AsRows     int     `json:"as_rows,omitempty"` // tables of whose gradients only touched rows were sent
}

// Eval is one evaluation over the test rows of all workers.
type Eval struct {
	Step    int     `json:"step"`
	Loss    float64 `json:"loss"`
	Metrics Metrics `json:"metrics,omitempty"`
	Best    bool    `json:"best,omitempty"` // it is better than all before it
	Seconds float64 `json:"seconds"`
}

// Lost is one survivor's report of a lost worker.
type Lost struct {
	Rank    int     `json:"rank"`
	Node    string  `json:"node"`    // the lost worker's name
	SeenBy  int     `json:"seen_by"` // the survivor's rank
	Op      string  `json:"op"`      // the survivor's call; empty between calls
	Phase   string  `json:"phase"`
	AfterMs float64 `json:"after_ms"` // since the survivor's call began
	Error   string  `json:"error"`
	Again   bool    `json:"again,omitempty"` // it is a server, and waits to be started again
	Left    int     `json:"left,omitempty"`  // workers that continue without it; 0: it ends the job
}

// String returns one line for the user.
func (e *Lost) String() string {
	when := fmt.Sprintf("in %s (%s) after %.1f ms", e.Op, e.Phase, e.AfterMs)
	if e.Op == "" {
		when = fmt.Sprintf("between calls (%s)", e.Phase)
	}
	text := fmt.Sprintf("rank %d lost rank %d (%s) %s: %s", e.SeenBy, e.Rank, e.Node, when, e.Error)
	switch e.Left {
	case 0:
		return text
	case 1:
		return text + "; 1 worker continues"
	}
	return fmt.Sprintf("%s; %d workers continue", text, e.Left)
}

// Weights is written when a machine has its copy of the trained weights.
type Weights struct {
	Path      string `json:"path"`
	Step      int    `json:"step"`
	Best      bool   `json:"best,omitempty"`       // they are those of the best evaluation
	InsteadOf string `json:"instead_of,omitempty"` // the path in --out, if it could not be written
}

// CheckpointFailed is written when a checkpoint or the weights cannot be written.
type CheckpointFailed struct {
	Path  string `json:"path"`
	Step  int    `json:"step"`
	Error string `json:"error"`
	Last  bool   `json:"last,omitempty"` // it was the final one, so the job fails
}

// SaveRetry is written when the final checkpoint or the weights cannot be written and
// the write will be retried.
type SaveRetry struct {
	Path  string    `json:"path"`
	Step  int       `json:"step"`
	Error string    `json:"error"`
	Full  bool      `json:"full,omitempty"` // there is no space
	Until time.Time `json:"until"`
}

// String returns one line for the user.
func (e *SaveRetry) String() string {
	hint := "repair what is wrong"
	if e.Full {
		hint = "free some space"
	}
	return fmt.Sprintf("%s; retrying until %s: %s, or interrupt twice to give up", e.Error, e.Until.Format(time.TimeOnly), hint)
}

// SaveWait is written by the first rank of a machine that has saved, if it waits for others.
type SaveWait struct {
	// Name is the rank that has not saved yet; "" if only others know it.
	Name string `json:"name,omitempty"`
}

// String returns one line for the user.
func (e *SaveWait) String() string {
	return "waiting for " + cmp.Or(e.Name, "another machine") + " to save; if it cannot, it retries for up to a minute"
}

// Resumed is written before the first step of a resumed run.
type Resumed struct {
	Path string `json:"path"`
	Step int    `json:"step"` // steps done before
}

// Checkpoint is written when a checkpoint is on disk.
type Checkpoint struct {
	Path      string `json:"path"`
	Step      int    `json:"step"`
	InsteadOf string `json:"instead_of,omitempty"` // the path in --out, if it could not be written
}

// Switched is written when the workers have changed their strategy.
type Switched struct {
	From     string  `json:"from"`
	Strategy string  `json:"strategy"`
	Step     int     `json:"step"` // steps done before
	Ms       float64 `json:"ms"`   // that it took
}

// String returns one line for the user.
func (e *Switched) String() string {
	return fmt.Sprintf("switched from %s to %s after step %d", e.From, e.Strategy, e.Step)
}

// Stopped is written instead of a Result if the job was asked to stop.
type Stopped struct {
	Steps int `json:"steps"`
}

// Result is the last event of a job that succeeded.
type Result struct {
	Loss             float64 `json:"loss"`                  // over the test rows, after the last step
	Metrics          Metrics `json:"metrics,omitempty"`     // over the test rows, after the last step
	BestStep         int     `json:"best_step,omitempty"`   // of the best evaluation; 0 if there was only one
	BestMetric       string  `json:"best_metric,omitempty"` // which decided: the first, or the loss
	BestValue        float64 `json:"best_value,omitempty"`
	Steps            int     `json:"steps"`
	Workers          int     `json:"workers"`
	Left             int     `json:"left,omitempty"` // of Workers at the end; 0: all
	Seconds          float64 `json:"seconds"`
	SamplesPerSecond float64 `json:"samples_per_second"`
	WeightsSHA256    string  `json:"weights_sha256"`
	BLAS             string  `json:"blas"` // what multiplied matrices
	Plan             string  `json:"plan"` // how gradients were summed
	Compress         string  `json:"compress"`
	WireBytes        int     `json:"wire_bytes"`        // of gradients, sent by one worker in all steps
	CompressionRatio float64 `json:"compression_ratio"` // WireBytes of all gradients without compression, divided by WireBytes
	Sparse           string  `json:"sparse"`            // how gradients of tables were to be sent
	SparseSteps      int     `json:"sparse_steps"`      // in which those of some tables were sent as rows
}

// Staleness says what became of the gradients of all workers, as the first parameter server
// has seen them. It is written before the Result or Stopped of a run in which servers do
// not wait for all workers.
type Staleness struct {
	Gradients int     `json:"gradients"`         // sent by one worker each
	Late      float64 `json:"late_percent"`      // staler than allowed
	Discarded float64 `json:"discarded_percent"` // late or after the end, and not applied
	Mean      float64 `json:"mean"`              // staleness
	Histogram []int   `json:"histogram"`         // of gradients by staleness; the 32nd number counts those of 31 and more
}

// String returns one line for the user.
func (s *Staleness) String() string {
	return fmt.Sprintf("staleness: %.2f on average; %.1f %% of %d gradients late, %.1f %% discarded", s.Mean, s.Late, s.Gradients, s.Discarded)
}

// Target says whether a run with a target reached it, and after how much. It is written
// before the Result.
type Target struct {
	Metric    string  `json:"metric"`
	Target    float64 `json:"target"` // value of the metric
	Reached   bool    `json:"reached"`
	Value     float64 `json:"value"`      // of the metric, in the first evaluation that reached it
	Step      int     `json:"step"`       // steps done before that
	Samples   int     `json:"samples"`    // of them, in this run
	Seconds   float64 `json:"seconds"`    // that they took
	WireBytes int     `json:"wire_bytes"` // of gradients, sent by one worker in them
}

// Tuned is written when the job uses a table of "ringtrain tune".
type Tuned struct {
	Path  string `json:"path"`
	Sizes int    `json:"sizes"`
}

// String returns one line for the user.
func (e *Tuned) String() string {
	return fmt.Sprintf("allreduce algorithms: as ringtrain tune measured for %d sizes, from %s", e.Sizes, e.Path)
}

// Ready reports to the launcher where a worker gossips.
type Ready struct {
	Addr string `json:"addr"`
}

// Regrouped reports to the launcher that the workers form another group with servers, or
// have formed it.
type Regrouped struct {
	Number int    `json:"number"`         // of the group; the first is 0
	Addr   string `json:"addr,omitempty"` // of a member, for servers to join; "" once the group is formed
}

// Progress reports to the launcher that a worker that was asked to stop makes progress.
type Progress struct {
}

// Failed reports to the launcher why a worker ends.
type Failed struct {
	Name  string `json:"name"` // as other workers know it
	Code  int    `json:"code"` // its exit code: 2 if the user has to change something, else 1
	Error string `json:"error"`
	Early bool   `json:"early,omitempty"` // it was asked to stop before the job had formed
}

// NewView returns the event of a View.
func NewView(v collective.View) *View {
	e := &View{Epoch: v.Epoch, Job: query.JobName(v.Job)}
	for r, m := range v.Members {
		info := Member{Rank: r, Name: m.Name, Node: m.Node}
		if len(m.Addrs) > 0 {
			info.Addr = m.Addrs[0].String()
		}
		e.Members = append(e.Members, info)
	}
	return e
}
