package bench

import (
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// A Row is what was measured for one size. It is the same on every rank.
type Row struct {
	Op        string           // a name of Operations
	DType     collective.DType // of the elements
	Reduction collective.Op    // 0 for operations that reduce nothing
	Root      int              // -1 for operations without one
	Ranks     int
	Size      int           // bytes, see the package comment
	Count     int           // elements that one rank gives
	Out       *Timing       // out of place
	In        *Timing       // in place; nil for operations that cannot
	Plan      schedule.Plan // of an allreduce; zero for other operations
}

// A Timing is the iterations of one size and placement.
type Timing struct {
	Iterations int
	Median     float64 // microseconds, as are the next three
	Mean       float64
	P99        float64
	Read       float64 // median of a call and one comparison of its result; 0 if nobody looked
	Wrong      int64   // elements; -1 if nobody looked
}

// Main is the timing that stands for the row: in place where that is possible.
func (r Row) Main() *Timing {
	if r.In != nil {
		return r.In
	}
	return r.Out
}

// Wrong is the wrong elements of both timings; those that nobody looked at
// count as right.
func (r Row) Wrong() int64 {
	wrong := int64(0)
	for _, t := range []*Timing{r.Out, r.In} {
		if t != nil {
			wrong += max(t.Wrong, 0)
		}
	}
	return wrong
}

// AlgBW is size by time in 1e9 bytes a second.
func (r Row) AlgBW(t *Timing) float64 {
	if t.Median <= 0 {
		return 0 // shorter than the clock can tell
	}
	return float64(r.Size) / t.Median / 1e3
}

// BusBW is AlgBW in terms of what a rank's link must carry, see the package
// comment.
func (r Row) BusBW(t *Timing) float64 {
	op, ok := operations[r.Op]
	if !ok {
		return 0
	}
	return r.AlgBW(t) * op.factor(r.Ranks)
}
