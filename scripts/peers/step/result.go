package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/scripts/peers/rounds"
)

// ours is the program with which all others are compared.
const ours = "ringtrain"

// programs have titles, in the order of the rows. Others come last.
var programs = rounds.Programs{
	{ours, "ringtrain"},
	{"ringtrain-openblas", "ringtrain, OpenBLAS"},
	{"debian", "PyTorch, Debian"},
	{"debian-core", "PyTorch, Debian, OPENBLAS_CORETYPE set"},
	{"pypi", "PyTorch, PyPI"},
	{"pypi-core", "PyTorch, PyPI, OPENBLAS_CORETYPE set"},
	{"gorgonia", "gorgonia"},
}

func isOurs(program string) bool { return strings.HasPrefix(program, ours) }

// A measurement is the output of one program for one model in one round.
type measurement struct {
	round   int
	program string
	record
}

var fileName = regexp.MustCompile(`^(mlp|convnet)-(\d+)-([a-z-]+)\.json$`)

// readAll reads all files of a directory, in the order of the table.
func readAll(dir fs.FS) ([]measurement, error) {
	var runs []measurement
	err := rounds.Read(dir, fileName, "MODEL-ROUND-PROGRAM.json", func(groups []string, text []byte) error {
		m := measurement{program: groups[2]}
		m.round, _ = strconv.Atoi(groups[1]) // digits
		if err := json.Unmarshal(text, &m.record); err != nil {
			return err
		}
		if err := m.check(groups[0]); err != nil {
			return err
		}
		runs = append(runs, m)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(runs, func(a, b measurement) int {
		return cmp.Or(
			slices.Index(modelNames, a.Model)-slices.Index(modelNames, b.Model),
			programs.Index(a.program)-programs.Index(b.program), strings.Compare(a.program, b.program), a.round-b.round,
		)
	})
	return runs, nil
}

func (m measurement) check(model string) error {
	switch {
	case m.Model != model:
		return fmt.Errorf("its model is %q", m.Model)
	case !(m.Median > 0) || m.Steps < 1:
		return fmt.Errorf("%d steps took %v us each", m.Steps, m.Median)
	case !(m.Last < m.First):
		return fmt.Errorf("the loss went from %v to %v, but it must fall", m.First, m.Last)
	}
	return nil
}

// A result has all rounds of one model.
type result struct {
	model string
	rows  []row
}

// A row has the figures of one program.
type row struct {
	program, about     string
	rounds             []int
	times, first, last []float64 // for each round
	steps              int       // minimum of the rounds
}

// summarize makes a result of every model.
func summarize(all []measurement) ([]result, error) {
	var results []result
	for _, m := range all {
		if len(results) == 0 || results[len(results)-1].model != m.Model {
			results = append(results, result{model: m.Model})
		}
		r := &results[len(results)-1]
		if i := len(r.rows) - 1; i < 0 || r.rows[i].program != m.program {
			r.rows = append(r.rows, row{program: m.program, about: m.About, steps: m.Steps})
		}
		x := &r.rows[len(r.rows)-1]
		x.rounds, x.steps = append(x.rounds, m.round), min(x.steps, m.Steps)
		x.times, x.first, x.last = append(x.times, m.Median), append(x.first, m.First), append(x.last, m.Last)
	}
	if results == nil {
		return nil, fmt.Errorf("there are no files")
	}
	for _, r := range results {
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", r.model, err)
		}
		if a, b := results[0].rows[0].rounds, r.rows[0].rounds; !slices.Equal(a, b) {
			return nil, fmt.Errorf("%s has the rounds %v, %s %v", results[0].model, a, r.model, b)
		}
	}
	return results, nil
}

// alike returns the maximum ratio of another program's loss to ringtrain's, and vice
// versa. All start with the same weights and see the same rows. So the losses of the
// ConvNet differ only by rounding. For the perceptron, dropout and details of Adam
// differ.
func alike(model string) float64 {
	if model == "mlp" {
		return 1.5
	}
	return 1.01
}

// check returns an error if the comparison is worthless.
func (r result) check() error {
	base, limit := r.rows[0], alike(r.model)
	if base.program != ours {
		return fmt.Errorf("%s is missing", ours)
	}
	for _, x := range r.rows {
		if !slices.Equal(x.rounds, base.rounds) {
			return fmt.Errorf("%s has the rounds %v, %s %v", ours, base.rounds, x.program, x.rounds)
		}
		if a, b := bench.Median(x.last), bench.Median(base.last); !(a <= limit*b && b <= limit*a) {
			return fmt.Errorf("the loss of %s is %.3f and that of %s is %.3f: they do not train the same", x.program, a, ours, b)
		}
	}
	return nil
}

// steps returns the minimum number of steps of a median.
func (r result) steps() int {
	least := r.rows[0].steps
	for _, x := range r.rows {
		least = min(least, x.steps)
	}
	return least
}

// find returns the index of a program's row, or -1.
func (r result) find(program string) int {
	return slices.IndexFunc(r.rows, func(x row) bool { return x.program == program })
}

// ratio returns the median over the rounds of a program's time divided by that of base
// in the same round.
func (r result) ratio(program, base string) (float64, bool) {
	i, j := r.find(program), r.find(base)
	if i < 0 || j < 0 || i == j {
		return 0, false
	}
	return rounds.Ratio(r.rows[i].times, r.rows[j].times), true
}
