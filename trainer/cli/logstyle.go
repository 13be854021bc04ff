package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// A logStyle shows evaluations in the lines of a notebook, which counts iterations from 0 and
// evaluates after the first.
type logStyle struct {
	line, last string // formats of a row and of the result, with the metric's name
	scale      float64
	digits     int
}

// logStyles are the values of --log-style.
var logStyles = map[string]*logStyle{
	"table": nil,
	"thinc": {line: "%d \t%s: %.*f", last: "Final \t%s: %.*f", scale: 1, digits: 3},
	"ray":   {line: "Iter %d: \t%s is %.*f", last: "Final %s is %.*f.", scale: 100, digits: 1},
}

// logStyleNames lists the values of --log-style, for errors.
func logStyleNames() string {
	all := slices.Sorted(maps.Keys(logStyles))
	n := len(all) - 1
	return strings.Join(all[:n], ", ") + " or " + all[n]
}

// row returns the line of an evaluation after an iteration.
func (l *logStyle) row(iteration int, all event.Metrics, loss float64) string {
	name, value, digits := l.metric(all, loss)
	return fmt.Sprintf(l.line, iteration, name, digits, value)
}

// final returns the line of the result.
func (l *logStyle) final(all event.Metrics, loss float64) string {
	name, value, digits := l.metric(all, loss)
	return fmt.Sprintf(l.last, name, digits, value)
}

// metric returns the first metric as the style shows it, or the loss if there is none.
func (l *logStyle) metric(all event.Metrics, loss float64) (name string, value float64, digits int) {
	if len(all) == 0 {
		return "loss", loss, 3
	}
	return all[0].Name, l.scale * all[0].Value, l.digits
}
