package cli

import (
	"maps"
	"slices"

	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// A logStyle shows evaluations in the lines of another program, which counts iterations from 0
// and evaluates after the first.
type logStyle interface {
	// header returns what stands above the first row; "" for nothing.
	header(e *event.Eval) string
	// row returns the line of an evaluation; "" if it is the last and final shows it.
	row(e *event.Eval, last bool) string
	// final returns the line of the result; "" to show it as below the table.
	final(e *event.Result) string
}

// logStyles are the values of --log-style.
var logStyles = map[string]logStyle{
	"table": nil,
	"thinc": notebookStyle{line: "%d \t%s: %.*f", last: "Final \t%s: %.*f", scale: 1, digits: 3},
	"ray":   notebookStyle{line: "Iter %d: \t%s is %.*f", last: "Final %s is %.*f.", scale: 100, digits: 1},
	"spacy": spacyStyle{},
}

// styleFor returns the style of that name for a run.
func styleFor(name string, t *job.Training) logStyle {
	if _, ok := logStyles[name].(spacyStyle); ok {
		return spacyStyle{epoch: stepsPerEpoch(t)}
	}
	return logStyles[name]
}

// stepsPerEpoch returns how many steps visit every training row once. Tasks that choose their
// batches by themselves, such as ner.v1, need another number.
func stepsPerEpoch(t *job.Training) int {
	rows, _ := t.Problem.Rows()
	batches := (max(rows, 1)-1)/t.Batch + 1
	together := t.AllWorkers() * max(t.Spec.Accumulate, 1)
	return t.Spec.Updates((batches+together-1)/together, t.AllWorkers())
}

// logStyleNames lists the values of --log-style, for errors.
func logStyleNames() string {
	return config.Either(slices.Sorted(maps.Keys(logStyles)))
}
