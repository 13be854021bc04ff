package main

import (
	"bufio"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer/catalog"
)

// times is an input of predict: text with one time per line. It is read as its rows are
// needed.
type times struct{ in catalog.Input }

// findTimes finds times in files or a stream. There is no header to look at.
func findTimes(in catalog.Input) (catalog.Dataset, error) { return times{in}, nil }

// Info implements catalog.Dataset.
func (times) Info() catalog.Info { return catalog.Info{Name: "times"} }

// Task implements catalog.Dataset.
func (times) Task() string { return "curve.v1" }

// open is part of pointData.
func (d times) open() (catalog.Table[points], error) {
	return catalog.Table[points]{Test: catalog.Split[points]{Stream: d.stream}}, nil
}

// stream returns the times as batches. If a line is bad, those before it come first.
func (d times) stream(room int, b nn.Backend) iter.Seq2[points, error] {
	return func(yield func(points, error) bool) {
		batch, host, n := newPoints(b, nil, nil, room), newColumns(room), 0
		for t, err := range d.lines() {
			if err != nil {
				if n == 0 || yield(copied(b, batch, host, n), nil) {
					yield(points{}, err)
				}
				return
			}
			host.t[n], n = t, n+1
			if n == room {
				if !yield(copied(b, batch, host, n), nil) {
					return
				}
				n = 0
			}
		}
		if n > 0 {
			yield(copied(b, batch, host, n), nil)
		}
	}
}

// lines returns the numbers of all lines.
func (d times) lines() iter.Seq2[float32, error] {
	return func(yield func(float32, error) bool) {
		for part, err := range d.in.Parts() {
			if err != nil {
				yield(0, err)
				return
			}
			lines, line := bufio.NewScanner(part), 0
			for lines.Scan() {
				line++
				t, err := strconv.ParseFloat(strings.TrimSpace(lines.Text()), 32)
				if err != nil || !(t >= -1 && t <= 1) {
					yield(0, fmt.Errorf("%s:%d: expected a number from -1 to 1, got %.40q", part.Name, line, lines.Text()))
					return
				}
				if !yield(float32(t), nil) {
					return
				}
			}
			if err := lines.Err(); err != nil {
				yield(0, fmt.Errorf("%s:%d: %w", part.Name, line+1, err))
				return
			}
		}
	}
}
