package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/query"
)

// The events of a job, each one JSON object a line. A worker writes them to
// its stdout for the launcher; with --json they reach the user as they are,
// but for ready, progress and failed, which are between worker and launcher. Step is the
// number of steps done in all of them, so that a step, an evaluation and a
// checkpoint of the same values have the same number.

// viewEvent is written when the workers have agreed who is in.
type viewEvent struct {
	Event   string       `json:"event"` // "view"
	Epoch   uint64       `json:"epoch"`
	Job     string       `json:"job"`
	Members []memberInfo `json:"members"`
	Device  string       `json:"device,omitempty"`  // what the workers of this machine compute on
	Cluster string       `json:"cluster,omitempty"` // what members and status take, with
	Gossip  string       `json:"gossip,omitempty"`  // the ADDRESS:PORT of this machine's first worker

	Transport string `json:"transport,omitempty"` // of bench collective on GPUs
}

type memberInfo struct {
	Rank int    `json:"rank"`
	Name string `json:"name"`
	Node string `json:"node"`
	Addr string `json:"addr,omitempty"`
}

// stepEvent is one step. Loss is the mean over the rows of all workers.
type stepEvent struct {
	Event      string  `json:"event"` // "step"
	Step       int     `json:"step"`
	Loss       float64 `json:"loss"`
	Samples    int     `json:"samples"`
	Seconds    float64 `json:"seconds"` // since the first step began
	ComputeMs  float64 `json:"compute_ms"`
	ExchangeMs float64 `json:"exchange_ms"`
	UpdateMs   float64 `json:"update_ms"`
	WireBytes  int     `json:"wire_bytes"` // of gradients, sent by this worker
}

// evalEvent is one evaluation over the test rows of all workers.
type evalEvent struct {
	Event    string  `json:"event"` // "eval"
	Step     int     `json:"step"`
	Accuracy float64 `json:"accuracy"` // fraction of 1
	Loss     float64 `json:"loss"`
	Seconds  float64 `json:"seconds"`
}

// lostEvent is one survivor's word about a worker that is gone.
type lostEvent struct {
	Event   string  `json:"event"` // "peer_lost"
	Rank    int     `json:"rank"`
	Node    string  `json:"node"`    // the lost worker's name
	SeenBy  int     `json:"seen_by"` // the survivor's rank
	Op      string  `json:"op"`
	Phase   string  `json:"phase"`
	AfterMs float64 `json:"after_ms"` // from the beginning of the survivor's call
	Error   string  `json:"error"`
}

// String is one line for the user.
func (e *lostEvent) String() string {
	return fmt.Sprintf("rank %d lost rank %d (%s) in %s after %.1f ms, %s: %s", e.SeenBy, e.Rank, e.Node, e.Op, e.AfterMs, e.Phase, e.Error)
}

// weightsEvent is written when a machine has its copy of the trained weights.
type weightsEvent struct {
	Event     string `json:"event"` // "weights"
	Path      string `json:"path"`
	Step      int    `json:"step"`
	InsteadOf string `json:"instead_of,omitempty"` // the path in --out, if it could not be written
}

// checkpointFailedEvent is written when a checkpoint, or the weights, cannot be
// written.
type checkpointFailedEvent struct {
	Event string `json:"event"` // "checkpoint_failed"
	Path  string `json:"path"`
	Step  int    `json:"step"`
	Error string `json:"error"`
	Last  bool   `json:"last,omitempty"` // it was to stay when the job ends, which fails
}

// saveRetryEvent is written when the last checkpoint, or the weights, cannot be
// written, and it is tried again.
type saveRetryEvent struct {
	Event string    `json:"event"` // "save_retry"
	Path  string    `json:"path"`
	Step  int       `json:"step"`
	Error string    `json:"error"`
	Until time.Time `json:"until"`
}

// String is one line for the user.
func (e *saveRetryEvent) String() string {
	return fmt.Sprintf("%s; trying again until %s: free some space, or interrupt twice to give up", e.Error, e.Until.Format(time.TimeOnly))
}

// resumedEvent is written before the first step of a training that goes on.
type resumedEvent struct {
	Event string `json:"event"` // "resumed"
	Path  string `json:"path"`
	Step  int    `json:"step"` // steps done before
}

// checkpointEvent is written when a checkpoint is on disk.
type checkpointEvent struct {
	Event     string `json:"event"` // "checkpoint"
	Path      string `json:"path"`
	Step      int    `json:"step"`
	InsteadOf string `json:"instead_of,omitempty"` // the path in --out, if it could not be written
}

// stoppedEvent is written instead of a result when a worker asked to stop.
type stoppedEvent struct {
	Event string `json:"event"` // "stopped"
	Steps int    `json:"steps"`
}

// resultEvent is the last of a job that went well.
type resultEvent struct {
	Event            string  `json:"event"`    // "result"
	Accuracy         float64 `json:"accuracy"` // fraction of 1, after the last step
	Loss             float64 `json:"loss"`     // over the test rows, after the last step
	Steps            int     `json:"steps"`
	Workers          int     `json:"workers"`
	Seconds          float64 `json:"seconds"`
	SamplesPerSecond float64 `json:"samples_per_second"`
	WeightsSHA256    string  `json:"weights_sha256"`
	BLAS             string  `json:"blas"` // what multiplied matrices
	Plan             string  `json:"plan"` // how gradients were added up
	Compress         string  `json:"compress"`
	WireBytes        int     `json:"wire_bytes"`        // of gradients, sent by one worker in all steps
	CompressionRatio float64 `json:"compression_ratio"` // what it would have been without, as a multiple
}

// rowEvent is one row of "bench collective".
type rowEvent struct {
	Event string    `json:"event"` // "row"
	Row   bench.Row `json:"row"`
}

// readyEvent tells the launcher where a worker gossips.
type readyEvent struct {
	Event string `json:"event"` // "ready"
	Addr  string `json:"addr"`
}

// progressEvent tells the launcher that a worker that was asked to stop gets on.
type progressEvent struct {
	Event string `json:"event"` // "progress"
}

// failedEvent tells the launcher why a worker ends.
type failedEvent struct {
	Event string `json:"event"` // "failed"
	Name  string `json:"name"`
	Code  int    `json:"code"`
	Error string `json:"error"`
	Early bool   `json:"early,omitempty"` // it was asked to stop before the job had formed
}

// emitter takes events, from any goroutine.
type emitter interface {
	emit(event any)
}

// jsonEmitter writes events one a line.
type jsonEmitter struct {
	// patience is how long steps are held back, to be written together: each line
	// wakes whoever reads, on the cores that the next steps want.
	patience time.Duration

	mu    sync.Mutex
	w     io.Writer // keeps its own failures, see output
	held  []byte
	timer *time.Timer // runs while something is held
}

func (j *jsonEmitter) emit(event any) {
	line, err := json.Marshal(event)
	if err != nil { // a number that JSON does not have; say so in the event's place
		line = fmt.Appendf(nil, `{"event":"invalid","error":%q}`, err.Error())
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.held = append(append(j.held, line...), '\n')
	if _, step := event.(*stepEvent); !step || j.patience == 0 {
		j.write()
	} else if j.timer == nil {
		j.timer = time.AfterFunc(j.patience, j.flush)
	}
}

// flush writes what is held. It is called when no event follows.
func (j *jsonEmitter) flush() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write()
}

func (j *jsonEmitter) write() {
	if j.timer != nil {
		j.timer.Stop()
		j.timer = nil
	}
	if len(j.held) > 0 {
		_, _ = j.w.Write(j.held)
		j.held = j.held[:0]
	}
}

// decodeEvent reads a worker's line; nil for a line that is no event.
func decodeEvent(line []byte) any {
	var kind struct {
		Event string `json:"event"`
	}
	if json.Unmarshal(line, &kind) != nil {
		return nil
	}
	kinds := map[string]func() any{
		"view": func() any { return new(viewEvent) }, "step": func() any { return new(stepEvent) },
		"eval": func() any { return new(evalEvent) }, "peer_lost": func() any { return new(lostEvent) },
		"checkpoint": func() any { return new(checkpointEvent) }, "checkpoint_failed": func() any { return new(checkpointFailedEvent) },
		"progress":   func() any { return new(progressEvent) },
		"save_retry": func() any { return new(saveRetryEvent) },
		"weights":    func() any { return new(weightsEvent) }, "resumed": func() any { return new(resumedEvent) }, "stopped": func() any { return new(stoppedEvent) },
		"result": func() any { return new(resultEvent) }, "ready": func() any { return new(readyEvent) },
		"failed": func() any { return new(failedEvent) }, "row": func() any { return new(rowEvent) },
		"tuned": func() any { return new(tunedEvent) }, "tuned_size": func() any { return new(tunedSizeEvent) }, "tune_saved": func() any { return new(tuneSavedEvent) },
		"measuring": func() any { return new(measuringEvent) }, "measured": func() any { return new(measuredEvent) },
	}
	make, ok := kinds[kind.Event]
	if !ok {
		return nil
	}
	event := make()
	if json.Unmarshal(line, event) != nil {
		return nil
	}
	return event
}

func newViewEvent(v collective.View) *viewEvent {
	e := &viewEvent{Event: "view", Epoch: v.Epoch, Job: query.JobName(v.Job)}
	for r, m := range v.Members {
		info := memberInfo{Rank: r, Name: m.Name, Node: m.Node}
		if len(m.Addrs) > 0 {
			info.Addr = m.Addrs[0].String()
		}
		e.Members = append(e.Members, info)
	}
	return e
}
