package trace

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer"
)

// Chrome writes what a rank does as a Chrome trace, which chrome://tracing and
// ui.perfetto.dev show. It is an array of events, one a line. The array's end is
// written with every flush, which is each step's end at the latest, and written
// over by the next one, so the file of a process that was killed is whole up to
// there. The process of the trace is the rank; steps and calls have a row each.
//
// It observes a Group (collective.FlightObserver) and Train (trainer.Observer).
type Chrome struct {
	rank int

	mu   sync.Mutex
	w    io.WriterAt
	at   int64  // where the next events go: over the array's end
	held []byte // events that are not flushed
	err  error
}

const (
	traceEnd  = "\n]\n"
	mostHeld  = 64 << 10 // bytes
	nextEvent = ",\n"
)

// The rows of a trace.
const (
	rowSteps = iota
	rowCalls
)

// NewChrome begins a trace for a rank, in a file that is empty.
func NewChrome(w io.WriterAt, rank int, name string) *Chrome {
	c := &Chrome{rank: rank, w: w, held: []byte("[")}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(event{Name: "process_name", Phase: "M", Args: map[string]any{"name": fmt.Sprintf("rank %d (%s)", rank, name)}})
	c.put(event{Name: "process_sort_index", Phase: "M", Args: map[string]any{"sort_index": rank}})
	c.put(event{Name: "thread_name", Phase: "M", Row: rowSteps, Args: map[string]any{"name": "steps"}})
	c.put(event{Name: "thread_name", Phase: "M", Row: rowCalls, Args: map[string]any{"name": "calls"}})
	c.flush()
	return c
}

// event is one event of the format, see
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
type event struct {
	Name    string         `json:"name"`
	Phase   string         `json:"ph"`
	Process int            `json:"pid"`
	Row     int            `json:"tid"`
	At      float64        `json:"ts"` // microseconds of Unix time
	Took    float64        `json:"dur,omitempty"`
	Args    map[string]any `json:"args,omitempty"`
}

// Called is part of collective.Observer; Recorded tells the same and more.
func (c *Chrome) Called(collective.Call, uint64, uint64, time.Duration, error) {}

// Recorded is part of collective.FlightObserver.
func (c *Chrome) Recorded(f *collective.FlightCall) {
	args := map[string]any{"call": f.Call.String(), "seq": f.Seq, "step": f.Step, "bytes": bytesOf(f.Call)}
	for _, w := range f.Waits {
		args[fmt.Sprintf("rank %d late to call, ms", w.Rank)] = ms(w.Late)
		args[fmt.Sprintf("rank %d slow to move, ms", w.Rank)] = ms(w.Slow)
	}
	if f.Err != nil {
		args["error"] = f.Err.Error()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(event{Name: f.Call.Kind.String(), Phase: "X", Row: rowCalls, At: micros(f.Began), Took: us(f.Took), Args: args})
	if f.Err != nil {
		c.flush()
	}
}

// Stepped is part of trainer.Observer.
func (c *Chrome) Stepped(e trainer.StepEvent) {
	now := micros(time.Now())
	c.mu.Lock()
	defer c.mu.Unlock()
	whole := us(e.Compute + e.Exchange + e.Update)
	c.put(event{Name: "step", Phase: "X", Row: rowSteps, At: now - whole, Took: whole, Args: map[string]any{
		"step": e.Step, "loss": number(e.Loss), "rows": e.Weight,
		"compute, ms": ms(e.Compute), "exchange, ms": ms(e.Exchange), "update, ms": ms(e.Update),
	}})
	c.flush()
}

// Evaluated is part of trainer.Observer.
func (c *Chrome) Evaluated(e trainer.EvalEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(event{Name: "evaluated", Phase: "i", Row: rowSteps, At: micros(time.Now()), Args: map[string]any{
		"step": e.Step, "accuracy": number(e.Accuracy), "loss": number(e.Loss),
	}})
}

// Close writes what is left, and returns the first failure to write anything.
func (c *Chrome) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flush()
	if c.err != nil {
		return fmt.Errorf("trace: %w", c.err)
	}
	return nil
}

// put adds one event. The lock is held, as for flush.
func (c *Chrome) put(e event) {
	e.Process = c.rank
	b, err := json.Marshal(e)
	if err != nil {
		c.err = err
		return
	}
	between := nextEvent
	if len(c.held) == 1 && c.at == 0 {
		between = "\n"
	}
	c.held = append(append(c.held, between...), b...)
	if len(c.held) >= mostHeld {
		c.flush()
	}
}

// flush writes what is held and the array's end, at once.
func (c *Chrome) flush() {
	if c.err == nil && len(c.held) > 0 {
		_, c.err = c.w.WriteAt(append(c.held, traceEnd...), c.at)
		c.at += int64(len(c.held))
	}
	c.held = c.held[:0]
}

// number is x, or its name where JSON has no number for it.
func number(x float64) any {
	if x-x != 0 {
		return fmt.Sprint(x)
	}
	return x
}

func micros(t time.Time) float64 { return float64(t.UnixNano()) / 1e3 }
func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
