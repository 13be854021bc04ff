package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"regexp"
	"strconv"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/scripts/peers/rounds"
)

const (
	warmUp    = 10  // steps of which the times do not count
	lastSteps = 100 // the training loss is their mean
)

// The cases: a whole run, and a short one for its times.
const (
	caseLoss = "loss"
	caseTime = "time"
)

// A training is what one program prints.
type training struct {
	kase, program string
	round         int
	losses        []float64 // bits per character of each step
	took          []float64 // milliseconds of each step after warmUp
	held          float64   // bits per character of the held-out rows
}

// An event is a line of "ringtrain train --json", as far as it is needed.
type event struct {
	Event   string  `json:"event"`
	Step    int     `json:"step"`
	Loss    float64 `json:"loss"`    // nats per character
	Seconds float64 `json:"seconds"` // since the start
	Bits    float64 `json:"bits_per_character"`
}

var fileName = regexp.MustCompile(`^(loss|time)-(\d+)-([a-z-]+)\.json$`)

// readAll reads all files of a directory.
func readAll(dir fs.FS) ([]training, error) {
	var all []training
	err := rounds.Read(dir, fileName, "CASE-ROUND-PROGRAM.json", func(groups []string, text []byte) error {
		t := training{kase: groups[0], program: groups[2]}
		t.round, _ = strconv.Atoi(groups[1]) // digits
		if err := t.parse(text); err != nil {
			return err
		}
		all = append(all, t)
		return nil
	})
	return all, err
}

// parse reads the events of a run.
func (t *training) parse(text []byte) error {
	var before float64
	for lines := json.NewDecoder(bytes.NewReader(text)); ; {
		var e event
		if err := lines.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		switch e.Event {
		case "step":
			t.losses = append(t.losses, e.Loss/math.Ln2)
			if e.Step != len(t.losses) {
				return fmt.Errorf("step %d follows step %d", e.Step, len(t.losses)-1)
			}
			if e.Step > warmUp {
				t.took = append(t.took, (e.Seconds-before)*1000)
			}
			before = e.Seconds
		case "result":
			t.held = e.Bits
		}
	}
	switch {
	case len(t.took) == 0:
		return fmt.Errorf("there are %d steps, but the first %d do not count", len(t.losses), warmUp)
	case !(t.held > 0):
		return errors.New("there is no loss of the held-out rows")
	case !(t.last() < t.losses[0]):
		return fmt.Errorf("the loss went from %v to %v bits, but it must fall", t.losses[0], t.last())
	}
	return nil
}

// last returns the training loss at the end.
func (t *training) last() float64 {
	var sum float64
	tail := t.losses[max(0, len(t.losses)-lastSteps):]
	for _, l := range tail {
		sum += l
	}
	return sum / float64(len(tail))
}

// time returns the median time of a step, in milliseconds.
func (t *training) time() float64 { return bench.Median(t.took) }
