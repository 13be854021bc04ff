package trainer

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringtrain/ringtrain/nn"
)

// A Target is a value of a metric at which training ends, like the quality target of MLPerf
// or the stopping_threshold of Lightning's EarlyStopping. The zero Target is none.
type Target struct {
	Metric string // of the task, or "loss"
	Value  float64
}

// ParseTarget reads METRIC=VALUE, such as "accuracy=.95".
func ParseTarget(text string) (Target, error) {
	at := strings.LastIndexByte(text, '=') // the name of a metric may have others
	if at > 0 {
		value, err := strconv.ParseFloat(text[at+1:], 64)
		if err == nil && !math.IsNaN(value) && !math.IsInf(value, 0) && !strings.ContainsRune("<>!=", rune(text[at-1])) {
			return Target{text[:at], value}, nil
		}
	}
	return Target{}, fmt.Errorf("a target must be METRIC=VALUE, such as accuracy=.95, not %q", text)
}

// String is what ParseTarget reads, or "none".
func (t Target) String() string {
	if t == (Target{}) {
		return "none"
	}
	return fmt.Sprintf("%s=%v", t.Metric, t.Value)
}

// A TargetError reports a Target whose metric the task does not have. All ranks get it.
type TargetError struct {
	Target  Target
	Metrics []string // that it could name
}

// Error names the metrics.
func (e *TargetError) Error() string {
	return fmt.Sprintf("trainer: the target is %v, and %s", e.Target, e.Reason())
}

// Reason is Error without the target.
func (e *TargetError) Reason() string {
	return fmt.Sprintf("this task has no metric %q: choose from %s", e.Target.Metric, strings.Join(e.Metrics, ", "))
}

// MetricOf returns the metric of a task that t names. Its value is that of no rows. The error is
// a *TargetError if the task does not have it.
func (t Target) MetricOf(task Task) (Metric, error) {
	e := &TargetError{Target: t}
	for _, m := range results(task.Metrics(nn.Counts{}), 0) {
		if m.Name == t.Metric {
			return m, nil
		}
		if !m.Detail {
			e.Metrics = append(e.Metrics, m.Name)
		}
	}
	return Metric{}, e
}

// checkTarget returns a *TargetError if no evaluation can reach the target.
func (c Config) checkTarget() error {
	if c.Eval.Until == (Target{}) {
		return nil
	}
	_, err := c.Eval.Until.MetricOf(c.Task)
	return err
}

// results returns the metrics of an evaluation and its loss.
func results(metrics []Metric, loss float64) []Metric {
	return append(slices.Clone(metrics), Metric{Name: "loss", Value: loss, Lower: true})
}

// A Reached is the first evaluation that reached a Target. The zero Reached stands for none.
type Reached struct {
	Step    int // steps done before it
	Metric  Metric
	Samples int           // rows of all ranks, in the steps of this call of Train
	Sent    int           // bytes of gradients that this rank sent in them
	Elapsed time.Duration // since the first of them began
}

// Found reports whether there was such an evaluation.
func (r Reached) Found() bool { return r.Step > 0 }

// reach keeps an evaluation if it is the first to reach the target.
func (l *loop) reach(e EvalEvent) {
	target := l.Eval.Until
	if l.result.Reached.Found() || target == (Target{}) {
		return
	}
	for _, m := range results(e.Metrics, e.Loss) {
		if m.Name != target.Metric {
			continue
		}
		if m.Value == target.Value || m.Lower == (m.Value < target.Value) {
			l.result.Reached = Reached{Step: e.Step, Metric: m, Samples: l.result.Samples, Sent: l.result.Sent, Elapsed: e.Elapsed}
		}
		return
	}
}

// ends reports whether training ends because the target is reached. The ranks of an
// Asynchronous learn that from rank 0, which asks them to stop.
func (l *loop) ends() bool {
	_, shared := l.Strategy.(Asynchronous)
	return l.result.Reached.Found() && !shared
}

// evaluateAgain repeats the evaluation, if any, that preceded the checkpoint from which this
// training resumes: it may have reached the target. An Asynchronous saves after any step.
func (l *loop) evaluateAgain(ctx context.Context) error {
	steps := l.place.Step
	_, shared := l.Strategy.(Asynchronous)
	if steps == 0 || l.Eval.Until == (Target{}) || !shared && !l.evaluates(steps-1, steps) {
		return nil
	}
	return l.evaluate(ctx)
}
