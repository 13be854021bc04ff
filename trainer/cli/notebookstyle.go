package cli

import (
	"fmt"

	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// A notebookStyle shows the first metric of each evaluation in the lines of a notebook.
type notebookStyle struct {
	line, last string  // formats of a row and of the result, with the metric's name
	scale      float64 // of fractions
	digits     int
}

func (notebookStyle) header(*event.Eval) string { return "" }

func (l notebookStyle) row(e *event.Eval, last bool) string {
	if last {
		return ""
	}
	name, value, digits := l.metric(e.Metrics, e.Loss)
	return fmt.Sprintf(l.line, e.Step-1, name, digits, value)
}

func (l notebookStyle) final(e *event.Result) string {
	name, value, digits := l.metric(e.Metrics, e.Loss)
	return fmt.Sprintf(l.last, name, digits, value)
}

// metric returns the first metric as the style shows it, or the loss if there is none.
func (l notebookStyle) metric(all event.Metrics, loss float64) (name string, value float64, digits int) {
	all = all.Shown()
	if len(all) == 0 {
		return "loss", loss, 3
	}
	if !all[0].Fraction {
		return all[0].Name, all[0].Value, 3
	}
	return all[0].Name, l.scale * all[0].Value, l.digits
}
