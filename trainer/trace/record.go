package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer/atomicfile"
)

// A Record is the flight record of one rank in its written form, a JSON object. Times
// from one machine are comparable; times from two machines only as far as their
// clocks agree.
type Record struct {
	Job     string    `json:"job"` // 16 hex digits
	Epoch   uint64    `json:"epoch"`
	Rank    int       `json:"rank"`
	Size    int       `json:"size"`
	Name    string    `json:"name"`
	Node    string    `json:"node"`
	Taken   time.Time `json:"taken"`
	Waiting *Waiting  `json:"waiting"` // null if no call is waiting
	Calls   []Call    `json:"calls"`   // oldest first; only the last may be in progress
}

// A Call is one call of a Record.
type Call struct {
	Call   string    `json:"call"` // such as "AllReduce(float32[10], sum)"
	Kind   string    `json:"kind"`
	Bytes  uint64    `json:"bytes"` // size of its vector
	Seq    uint64    `json:"seq"`
	Step   uint64    `json:"step"`
	Began  time.Time `json:"began"`
	TookMs float64   `json:"took_ms"` // so far, if it is in progress; 0 means a few microseconds
	Done   bool      `json:"done"`
	Error  string    `json:"error,omitempty"`
	Waits  []Wait    `json:"waits,omitempty"` // including a wait in progress
}

// A Wait is the time that a call has waited for one peer.
type Wait struct {
	Rank   int     `json:"rank"`
	LateMs float64 `json:"late_ms"` // until the peer's first message
	SlowMs float64 `json:"slow_ms"` // after that
}

// Waiting is a wait in progress.
type Waiting struct {
	Rank  int     `json:"rank"`
	Cause string  `json:"cause"` // "late to call" or "slow to move"
	ForMs float64 `json:"for_ms"`
}

// NewRecord returns the written form of a flight record.
func NewRecord(f collective.Flight) Record {
	r := Record{
		Job: fmt.Sprintf("%016x", f.View.Job), Epoch: f.View.Epoch, Rank: f.View.Self, Size: f.View.Size(),
		Name: f.View.Name(f.View.Self), Taken: f.Taken, Calls: []Call{},
	}
	if f.View.Self >= 0 && f.View.Self < f.View.Size() {
		r.Node = f.View.Members[f.View.Self].Node
	}
	for _, c := range f.Calls {
		w := Call{
			Call: c.Call.String(), Kind: c.Call.Kind.String(), Bytes: bytesOf(c.Call), Seq: c.Seq, Step: c.Step,
			Began: c.Began, TookMs: ms(c.Took), Done: c.Done,
		}
		if c.Err != nil {
			w.Error = c.Err.Error()
		}
		for _, wait := range c.Waits {
			w.Waits = append(w.Waits, Wait{wait.Rank, ms(wait.Late), ms(wait.Slow)})
		}
		r.Calls = append(r.Calls, w)
	}
	if f.Waiting != nil {
		r.Waiting = &Waiting{f.Waiting.Rank, f.Waiting.Cause.String(), ms(f.Waiting.For)}
		r.Calls[len(r.Calls)-1].add(r.Waiting, f.Waiting.Cause)
	}
	return r
}

// add includes the wait in progress.
func (c *Call) add(w *Waiting, cause collective.Cause) {
	i, found := slices.BinarySearchFunc(c.Waits, w.Rank, func(known Wait, rank int) int { return cmp.Compare(known.Rank, rank) })
	if !found {
		c.Waits = slices.Insert(c.Waits, i, Wait{Rank: w.Rank})
	}
	if cause == collective.LateToCall {
		c.Waits[i].LateMs += w.ForMs
	} else {
		c.Waits[i].SlowMs += w.ForMs
	}
}

// bytesOf returns the size of a call's vector in bytes.
func bytesOf(c collective.Call) uint64 {
	if c.Kind == collective.KindBarrier {
		return 0
	}
	return c.Count * uint64(c.DType.Size())
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// InProgress returns the call in progress, or nil.
func (r *Record) InProgress() *Call {
	if n := len(r.Calls); n > 0 && !r.Calls[n-1].Done {
		return &r.Calls[n-1]
	}
	return nil
}

// Summary describes in one line what the rank is doing, or did last, and for which
// rank it waits.
func (r *Record) Summary() string {
	if len(r.Calls) == 0 {
		return fmt.Sprintf("rank %d (%s) has made no call", r.Rank, r.Name)
	}
	c := &r.Calls[len(r.Calls)-1]
	text := fmt.Sprintf("rank %d (%s) at step %d: %s #%d", r.Rank, r.Name, c.Step, c.Call, c.Seq)
	switch {
	case !c.Done:
		text += " in progress for " + Span(c.TookMs)
	case c.Error != "":
		text += " failed after " + Span(c.TookMs)
	default:
		text += " was the last call"
	}
	if longest := c.longestWait(); longest != nil {
		text += fmt.Sprintf("; it waited for rank %d: %s late to call, %s slow to move", longest.Rank, Span(longest.LateMs), Span(longest.SlowMs))
	}
	return text
}

// longestWait returns the longest wait of a call, or nil.
func (c *Call) longestWait() *Wait {
	var longest *Wait
	for i := range c.Waits {
		if w := &c.Waits[i]; longest == nil || w.LateMs+w.SlowMs > longest.LateMs+longest.SlowMs {
			longest = w
		}
	}
	return longest
}

// Span formats milliseconds for people.
func Span(ms float64) string {
	switch {
	case ms >= 10_000:
		return fmt.Sprintf("%.0f s", ms/1000)
	case ms >= 1000:
		return fmt.Sprintf("%.1f s", ms/1000)
	case ms >= 1:
		return fmt.Sprintf("%.1f ms", ms)
	case ms > 0:
		return fmt.Sprintf("%.0f µs", ms*1000)
	}
	return "0"
}

// Encode returns the record as JSON of at most limit bytes. If it is longer, Encode omits
// the oldest calls.
func (r Record) Encode(limit int) ([]byte, error) {
	for {
		b, err := json.Marshal(r)
		if err != nil || len(b) <= limit || len(r.Calls) == 0 {
			return b, err
		}
		r.Calls = r.Calls[(len(r.Calls)+1)/2:]
	}
}

// Save writes the record to a file atomically.
func (r Record) Save(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	if err := atomicfile.WriteFile(path, append(b, '\n'), atomicfile.Options{NoSync: true}); err != nil {
		return fmt.Errorf("trace: writing the flight record %s: %w", path, err)
	}
	return nil
}
