package bench

import (
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// A Row has the measurements of one size. It is the same on every rank.
type Row struct {
	Op        string           // a name of Operations
	DType     collective.DType // of the elements
	Reduction collective.Op    // 0 for operations that do not reduce
	Root      int              // -1 for operations without one
	Ranks     int
	Size      int           // bytes; see the package comment
	Count     int           // elements of one part; see the package comment
	Out       *Timing       // out of place
	In        *Timing       // in place; nil for operations that do not work in place
	Plan      schedule.Plan // of an allreduce; zero for other operations
}

// A Timing summarizes the iterations of one size and placement.
type Timing struct {
	Iterations int
	Median     float64 // microseconds, like the next three
	Mean       float64
	P99        float64
	Read       float64 // median of a call plus one comparison of its result; 0 without checks
	Wrong      int64   // elements; -1 without checks
}

// Main returns the main timing of the row: in place, if possible.
func (r Row) Main() *Timing {
	if r.In != nil {
		return r.In
	}
	return r.Out
}

// Wrong returns the number of wrong elements of both timings. Unchecked ones count as
// correct.
func (r Row) Wrong() int64 {
	wrong := int64(0)
	for _, t := range []*Timing{r.Out, r.In} {
		if t != nil {
			wrong += max(t.Wrong, 0)
		}
	}
	return wrong
}

// AlgBW returns size divided by time, in 1e9 bytes per second.
func (r Row) AlgBW(t *Timing) float64 {
	if t.Median <= 0 {
		return 0 // shorter than the clock's resolution
	}
	return float64(r.Size) / t.Median / 1e3
}

// BusBW returns AlgBW in terms of what a rank's link must carry; see the package
// comment.
func (r Row) BusBW(t *Timing) float64 {
	op, ok := operations[r.Op]
	if !ok {
		return 0
	}
	return r.AlgBW(t) * op.factor(r.Ranks)
}
