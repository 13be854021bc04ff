package sgd

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// A stageLog writes the lines of Ray's verbose DistributedSGD, in seconds:
//
//	compute grad interior time 5.760771989    one line per worker
//	compute all grads time 5.906821250
//	grad reduce time 0.198112487              if there are several workers
//	apply grad interior time 0.236296653      one line per worker
//	apply all grads time 0.430755376
type stageLog struct {
	w     io.Writer
	steps []Times // the latest, at most mostSteps
	err   error   // the first one of w
}

// mostSteps is the number of steps that the summary covers. It bounds the memory.
const mostSteps = 10_000

// A stage is a label of the log, and the times under it in one step.
type stage struct {
	label string
	took  []time.Duration
}

// stages returns the lines of a step, in order.
func (t Times) stages() []stage {
	compute, apply := stage{label: "compute grad interior time"}, stage{label: "apply grad interior time"}
	for _, w := range t.Workers {
		compute.took, apply.took = append(compute.took, w.Compute), append(apply.took, w.Apply)
	}
	reduce := stage{label: "grad reduce time"}
	if len(t.Workers) > 1 {
		reduce.took = []time.Duration{t.Reduce}
	}
	return []stage{
		compute, {"compute all grads time", []time.Duration{t.Compute}},
		reduce,
		apply, {"apply all grads time", []time.Duration{t.Apply}},
	}
}

// add writes the lines of a step.
func (l *stageLog) add(t Times) {
	if len(l.steps) == mostSteps {
		l.steps = slices.Delete(l.steps, 0, mostSteps/2)
	}
	l.steps = append(l.steps, t)
	var text strings.Builder
	for _, s := range t.stages() {
		for _, took := range s.took {
			fmt.Fprintf(&text, "%s %v\n", s.label, took.Seconds())
		}
	}
	l.write(text.String())
}

// close writes the median and the 95th percentile under each label, and returns the first
// error of writing.
func (l *stageLog) close() error {
	var text strings.Builder
	if len(l.steps) > 0 {
		all := l.steps[0].stages()
		for _, t := range l.steps[1:] {
			for i, s := range t.stages() {
				all[i].took = append(all[i].took, s.took...)
			}
		}
		for _, s := range all {
			if len(s.took) > 0 {
				slices.Sort(s.took)
				fmt.Fprintf(&text, "%s p50 %v p95 %v\n", s.label, quantile(s.took, .5).Seconds(), quantile(s.took, .95).Seconds())
			}
		}
	}
	l.write(text.String())
	return l.err
}

func (l *stageLog) write(text string) {
	if l.err != nil {
		return
	}
	if _, err := io.WriteString(l.w, text); err != nil {
		l.err = fmt.Errorf("sgd: writing the verbose log: %w", err)
	}
}

// quantile returns the smallest of some sorted times that at least the fraction q of them
// do not exceed.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}
