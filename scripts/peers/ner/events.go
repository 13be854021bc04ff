package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/scripts/peers/rounds"
)

// warmUp is the number of steps at the start whose times do not count.
const warmUp = 10

// A run is one training run by one program.
type run struct {
	program string
	round   int
	steps   int
	words   int     // of the steps after warmUp
	seconds float64 // of the steps after warmUp
	f       float64 // ents_f of the held-out sentences, at the end
	with    string
}

// rate returns words per second.
func (r run) rate() float64 { return float64(r.words) / r.seconds }

// An event is a line of "ringtrain train --json" or of spacy_ner.py, as far as it is needed.
type event struct {
	Event   string   `json:"event"`
	Step    int      `json:"step"`
	Words   int      `json:"samples"`
	Seconds float64  `json:"seconds"` // since the start of the first step
	F       *float64 `json:"ents_f"`
	BLAS    string   `json:"blas"`  // of ringtrain
	About   string   `json:"about"` // of spaCy
}

var fileName = regexp.MustCompile(`^(\d+)-(\d+)-([a-z-]+)\.json$`)

// readAll reads all files of a directory, in the order of the table.
func readAll(dir fs.FS) ([]run, error) {
	var runs []run
	err := rounds.Read(dir, fileName, "STEPS-ROUND-PROGRAM.json", func(groups []string, text []byte) error {
		r := run{program: groups[2]}
		r.round, _ = strconv.Atoi(groups[1]) // digits
		if err := r.parse(text); err != nil {
			return err
		}
		if strconv.Itoa(r.steps) != groups[0] {
			return fmt.Errorf("there are %d steps", r.steps)
		}
		runs = append(runs, r)
		return nil
	})
	slices.SortFunc(runs, func(a, b run) int {
		return cmp.Or(programs.Index(a.program)-programs.Index(b.program), strings.Compare(a.program, b.program), a.steps-b.steps, a.round-b.round)
	})
	switch {
	case err != nil:
	case len(runs) == 0:
		err = errors.New("there are no files")
	case slices.ContainsFunc(runs, func(r run) bool { return r.steps != runs[0].steps }):
		err = errors.New("the trainings must have the same number of steps")
	}
	return runs, err
}

// parse reads the events of a run.
func (r *run) parse(text []byte) error {
	var begin, end float64
	done := false
	for lines := json.NewDecoder(bytes.NewReader(text)); ; {
		var e event
		if err := lines.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		switch e.Event {
		case "step":
			if r.steps++; e.Step != r.steps {
				return fmt.Errorf("step %d follows step %d", e.Step, r.steps-1)
			}
			if end = e.Seconds; e.Step > warmUp {
				r.words += e.Words
			} else {
				begin = end
			}
		case "result":
			if e.F == nil {
				return errors.New("the result has no ents_f")
			}
			done, r.f, r.with = true, *e.F, e.BLAS+e.About
		}
	}
	switch r.seconds = end - begin; {
	case r.words == 0 || !(r.seconds > 0):
		return fmt.Errorf("after %d steps, %d words took %v s", warmUp, r.words, r.seconds)
	case !done:
		return errors.New("there is no result")
	}
	return nil
}
