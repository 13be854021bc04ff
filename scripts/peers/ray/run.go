package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/scripts/peers/rounds"
)

// A run is what one program reports of one training run. ringtrain reports it as its result
// event.
type run struct {
	training string // such as perceptron-sync
	program  string
	round    int
	curve    []evaluation

	Workers  int      `json:"workers"`
	Steps    int      `json:"steps"` // updates
	Rate     float64  `json:"samples_per_second"`
	Accuracy *float64 `json:"accuracy"` // of the test rows, at the end
	Plan     string   `json:"plan"`     // of ringtrain
	About    string   `json:"about"`    // of Ray
}

// An evaluation is one before the end. ringtrain reports it as its eval event.
type evaluation struct {
	Event    string  `json:"event"`
	Step     int     `json:"step"` // updates before it
	Accuracy float64 `json:"accuracy"`
}

var fileName = regexp.MustCompile(`^([a-z]+-[a-z]+)-(\d+)-([a-z]+)\.json$`)

// readAll reads all files of a directory, in the order of the table.
func readAll(dir fs.FS) ([]run, error) {
	var runs []run
	err := rounds.Read(dir, fileName, "TRAINING-ROUND-PROGRAM.json", func(groups []string, text []byte) error {
		r := run{training: groups[0], program: groups[2]}
		r.round, _ = strconv.Atoi(groups[1]) // digits
		for lines := json.NewDecoder(bytes.NewReader(text)); lines.More(); {
			var line json.RawMessage
			if err := lines.Decode(&line); err != nil {
				return err
			}
			var e evaluation
			if json.Unmarshal(line, &e) == nil && e.Event == "eval" {
				r.curve = append(r.curve, e)
			} else if err := json.Unmarshal(line, &r); err != nil {
				return err
			}
		}
		if r.Steps < 1 || !(r.Rate > 0) || r.Accuracy == nil {
			return fmt.Errorf("there are %d updates at %v samples/s, or no accuracy", r.Steps, r.Rate)
		}
		runs = append(runs, r)
		return nil
	})
	slices.SortFunc(runs, func(a, b run) int {
		return cmp.Or(-strings.Compare(a.training, b.training), programs.Index(a.program)-programs.Index(b.program), strings.Compare(a.program, b.program), a.round-b.round)
	})
	if err == nil && len(runs) == 0 {
		err = errors.New("there are no files")
	}
	if err == nil {
		err = checkAlike(runs)
	}
	return runs, err
}

// checkAlike returns an error if runs of one kind differ in workers or updates.
func checkAlike(runs []run) error {
	for i, r := range runs {
		if before := runs[max(i-1, 0)]; before.training == r.training && (before.Workers != r.Workers || before.Steps != r.Steps) {
			return fmt.Errorf("runs of %s differ: %d updates of %d workers, and %d of %d", r.training, before.Steps, before.Workers, r.Steps, r.Workers)
		}
	}
	return nil
}

// writeCSV writes every run.
func writeCSV(name string, runs []run) error {
	lines := [][]string{{"training", "round", "program", "workers", "updates", "samples_per_second", "accuracy", "with"}}
	for _, r := range runs {
		lines = append(lines, []string{
			r.training, strconv.Itoa(r.round), r.program, strconv.Itoa(r.Workers), strconv.Itoa(r.Steps), rounds.Exact(r.Rate), rounds.Exact(*r.Accuracy), r.Plan + r.About,
		})
	}
	return rounds.WriteCSV(name, lines)
}
