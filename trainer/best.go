package trainer

import (
	"context"
	"fmt"
	"math"
)

// A Best is the best evaluation of a run: the one with the best value of the task's
// first metric or, if the task has none, with the lowest loss. Of equal ones it is the
// first; values that differ by less than a millionth count as equal. The zero Best stands
// for none.
type Best struct {
	Step   int    // steps done before it
	Metric Metric // which decides
	// Values are those of the parameters at that step; nil on ranks without
	// Config.KeepBest.
	Values []float32
}

// Found reports whether there was an evaluation.
func (b Best) Found() bool { return b.Metric.Name != "" }

// setting identifies b for comparison between ranks. Values follow from the step.
func (b Best) setting() Setting {
	return Setting{Name: "the best evaluation so far", Value: fmt.Sprint(b.Step, b.Metric.Name, b.Metric.Value)}
}

// decisive returns the metric that decides which evaluation is the best.
func decisive(e EvalEvent) Metric {
	if len(e.Metrics) > 0 {
		return e.Metrics[0]
	}
	return Metric{Name: "loss", Value: e.Loss, Lower: true}
}

// beats reports whether m is better than another value of the same metric. Sums of losses
// are rounded differently if another number of ranks shares the rows, so tiny differences
// must not decide.
func (m Metric) beats(other Metric) bool {
	gain := m.Value - other.Value
	if m.Lower {
		gain = -gain
	}
	return gain > 1e-6*max(math.Abs(m.Value), math.Abs(other.Value))
}

// compare reports whether an evaluation is the best so far, and then keeps it. All ranks
// compare the same numbers.
func (l *loop) compare(ctx context.Context, e EvalEvent) (best bool, err error) {
	m, before := decisive(e), l.result.Best
	if before.Metric.Name == m.Name && !m.beats(before.Metric) {
		return false, nil
	}
	now := Best{Step: e.Step, Metric: m}
	if l.KeepBest {
		if now.Values = before.Values; len(now.Values) != l.params.Values.Len() {
			now.Values = make([]float32, l.params.Values.Len())
		}
		l.Backend.Read(now.Values, l.params.Values)
		err = l.Backend.Sync(ctx)
	}
	l.result.Best = now
	return true, err
}
