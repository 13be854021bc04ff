package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// spacyStyle is the table of spaCy's console logger. Its columns are the epoch, the iteration,
// the losses of training, which are metrics named loss_X, the metrics of the evaluation, with
// fractions in percent, and the score, which is the first of these as it is.
type spacyStyle struct {
	epoch int // steps, of tasks without a metric of that name
}

// A spacyColumn is a column of the table, with its value in one row.
type spacyColumn struct {
	title string
	width int // at least; a longer title makes it wider
	value string
}

func (l spacyStyle) columns(e *event.Eval) []spacyColumn {
	epoch := float64((e.Step - 1) / max(l.epoch, 1))
	if slices.ContainsFunc(e.Metrics, func(m event.Metric) bool { return m.Name == "epoch" }) {
		epoch = e.Metrics.Value("epoch")
	}
	all := []spacyColumn{{"E", 3, fmt.Sprint(epoch)}, {"#", 6, fmt.Sprint(e.Step - 1)}}
	for _, m := range e.Metrics {
		if of, ok := strings.CutPrefix(m.Name, "loss_"); ok {
			all = append(all, spacyColumn{"LOSS " + strings.ToUpper(of), 8, fmt.Sprintf("%.2f", m.Value)})
		}
	}
	shown, score := e.Metrics.Shown(), 0.
	for _, m := range shown {
		value := fmt.Sprintf("%.4f", m.Value)
		if m.Fraction {
			value = fmt.Sprintf("%.2f", 100*m.Value)
		}
		all = append(all, spacyColumn{strings.ToUpper(m.Name), 6, value})
	}
	if len(shown) > 0 {
		score = shown[0].Value
	}
	all = append(all, spacyColumn{"SCORE", 6, fmt.Sprintf("%.2f", score)})
	for i := range all {
		all[i].width = max(all[i].width, len(all[i].title))
	}
	return all
}

func (l spacyStyle) header(e *event.Eval) string {
	var titles, rules []string
	for _, c := range l.columns(e) {
		titles, rules = append(titles, fmt.Sprintf("%-*s", c.width, c.title)), append(rules, strings.Repeat("-", c.width))
	}
	return strings.Join(titles, "  ") + "\n" + strings.Join(rules, "  ")
}

func (l spacyStyle) row(e *event.Eval, _ bool) string {
	var values []string
	for _, c := range l.columns(e) {
		values = append(values, fmt.Sprintf("%*s", c.width, c.value))
	}
	return strings.Join(values, "  ")
}

func (spacyStyle) final(*event.Result) string { return "" }
