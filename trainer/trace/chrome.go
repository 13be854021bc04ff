package trace

import (
	"fmt"
	"io"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer"
)

// Chrome writes a rank's activity as a Chrome trace, for chrome://tracing and
// ui.perfetto.dev. The file of a killed process is valid, and has at least all steps that
// had ended. Each rank is a process in the trace, with one row for steps and one for calls.
//
// Chrome observes a Group (collective.FlightObserver) and Train (trainer.Observer).
type Chrome struct {
	rank int
	file eventFile
}

// The rows of a trace.
const (
	rowSteps = iota
	rowCalls
)

var _ collective.FlightObserver = (*Chrome)(nil)

// NewChrome starts a trace for a rank, in an empty file.
func NewChrome(w io.WriterAt, rank int, name string) *Chrome {
	c := &Chrome{rank: rank, file: eventFile{w: w}}
	c.file.mu.Lock()
	defer c.file.mu.Unlock()
	c.put(event{Name: "process_name", Phase: "M", Args: map[string]any{"name": fmt.Sprintf("rank %d (%s)", rank, name)}})
	c.put(event{Name: "process_sort_index", Phase: "M", Args: map[string]any{"sort_index": rank}})
	c.put(event{Name: "thread_name", Phase: "M", Row: rowSteps, Args: map[string]any{"name": "steps"}})
	c.put(event{Name: "thread_name", Phase: "M", Row: rowCalls, Args: map[string]any{"name": "calls"}})
	c.file.flush()
	return c
}

// Called is part of collective.Observer. It does nothing, because Recorded reports more.
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
	c.file.mu.Lock()
	defer c.file.mu.Unlock()
	c.put(event{Name: f.Call.Kind.String(), Phase: "X", Row: rowCalls, At: micros(f.Began), Took: us(f.Took), Args: args})
	if f.Err != nil {
		c.file.flush()
	}
}

// Stepped is part of trainer.Observer.
func (c *Chrome) Stepped(e trainer.StepEvent) {
	now := micros(time.Now())
	c.file.mu.Lock()
	defer c.file.mu.Unlock()
	whole := us(e.Compute + e.Exchange + e.Update)
	c.put(event{Name: "step", Phase: "X", Row: rowSteps, At: now - whole, Took: whole, Args: map[string]any{
		"step": e.Step, "loss": number(e.Loss), "rows": e.Weight,
		"gradients sent, bytes": e.Sent, "tables sent as rows": e.AsRows,
		"compute, ms": ms(e.Compute), "exchange, ms": ms(e.Exchange), "update, ms": ms(e.Update),
	}})
	c.file.flush()
}

// Evaluated is part of trainer.Observer.
func (c *Chrome) Evaluated(e trainer.EvalEvent) {
	c.file.mu.Lock()
	defer c.file.mu.Unlock()
	args := map[string]any{"step": e.Step, "loss": number(e.Loss)}
	for _, m := range e.Metrics {
		args[m.Name] = number(m.Value)
	}
	c.put(event{Name: "evaluated", Phase: "i", Row: rowSteps, At: micros(time.Now()), Args: args})
}

// Close writes the remaining events and returns the first write error.
func (c *Chrome) Close() error { return c.file.close() }

// put adds an event of this rank. The caller holds the file's lock.
func (c *Chrome) put(e event) {
	e.Process = c.rank
	c.file.put(e)
}

// number returns x, or its name if JSON cannot represent it.
func number(x float64) any {
	if x-x != 0 {
		return fmt.Sprint(x)
	}
	return x
}

func micros(t time.Time) float64 { return float64(t.UnixNano()) / 1e3 }
func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
