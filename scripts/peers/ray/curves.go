package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/bench"
)

// batch is the number of rows of a worker in a step.
const batch = 128

// draw writes a plot of accuracy over the training rows that it took, for each network, as
// accuracy-NETWORK.png and .svg.
func draw(dir string, runs []run) error {
	charts := map[string]*bench.Chart{}
	for _, r := range runs {
		network, mode, _ := strings.Cut(r.training, "-") // fileName has matched
		c := charts[network]
		if c == nil {
			c = &bench.Chart{Title: "Test accuracy, " + network, X: "training rows (thousands)", Y: "accuracy"}
			charts[network] = c
		}
		name := programs.Title(r.program) + ", " + mode
		if slices.ContainsFunc(c.Lines, func(l bench.Line) bool { return l.Name == name }) {
			continue // of another round
		}
		same := slices.DeleteFunc(slices.Clone(runs), func(o run) bool { return o.training != r.training || o.program != r.program })
		l, err := line(same)
		if err != nil {
			return err
		}
		l.Name, l.Dashed = name, mode == "async"
		c.Lines = append(c.Lines, l)
	}
	for network, c := range charts {
		for _, format := range []string{"png", "svg"} {
			if err := save(c, filepath.Join(dir, "accuracy-"+network+"."+format), format); err != nil {
				return err
			}
		}
	}
	return nil
}

// line returns the medians of the rounds of one program and training. Evaluations of
// asynchronous trainings are after different updates, so the rounds are interpolated.
func line(runs []run) (l bench.Line, err error) {
	first := runs[0]
	rows := batch // of an update
	if strings.HasSuffix(first.training, "-sync") {
		rows *= first.Workers
	}
	for _, e := range first.curve {
		var all []float64
		for _, r := range runs {
			if accuracy, ok := r.after(e.Step); ok {
				all = append(all, accuracy)
			}
		}
		if len(all) == len(runs) {
			l.X, l.Y = append(l.X, float64(e.Step*rows)/1000), append(l.Y, bench.Median(all))
		}
	}
	if len(l.X) == 0 {
		err = errors.New("runs of " + first.training + " have no evaluations: measure with --curves")
	}
	return l, err
}

// after returns the accuracy after a number of updates, on a straight line between the
// evaluations before and after it, or false if it is outside of all evaluations.
func (r *run) after(step int) (accuracy float64, ok bool) {
	for i, e := range r.curve {
		switch {
		case e.Step == step:
			return e.Accuracy, true
		case e.Step > step && i > 0:
			before := r.curve[i-1]
			part := float64(step-before.Step) / float64(e.Step-before.Step)
			return before.Accuracy + part*(e.Accuracy-before.Accuracy), true
		}
	}
	return 0, false
}

func save(c *bench.Chart, name, format string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(c.Plot(f, format), f.Close())
}
