package main

import (
	"time"

	"github.com/ringtrain/ringtrain/bench"
)

// The first steps are not counted: memory is touched, graphs are compiled. The
// loss at the end is the mean of the last steps. step.py has the same numbers.
const (
	warmUp    = 30
	lastSteps = 20
)

// A record is what a program says of one model.
type record struct {
	Model  string  `json:"model"`
	Median float64 `json:"median_us"`
	Least  float64 `json:"least_us"`
	Steps  int     `json:"steps"`      // counted
	First  float64 `json:"first_loss"` // of the first step, mean over the rows
	Last   float64 `json:"last_loss"`
	About  string  `json:"about"` // version, and what multiplies matrices
}

// A clock keeps what steps took and their losses.
type clock struct {
	steps  int // in all
	took   []float64
	losses []float64
}

func newClock(counted int) *clock { return &clock{steps: warmUp + counted} }

// add takes in one step.
func (c *clock) add(took time.Duration, loss float64) {
	c.took = append(c.took, float64(took)/float64(time.Microsecond))
	c.losses = append(c.losses, loss)
}

// record is of the steps after warmUp.
func (c *clock) record() record {
	took := c.took[warmUp:]
	r := record{Median: bench.Median(took), Least: took[0], Steps: len(took), First: c.losses[0]}
	for _, t := range took {
		r.Least = min(r.Least, t)
	}
	last := c.losses[max(0, len(c.losses)-lastSteps):]
	for _, l := range last {
		r.Last += l / float64(len(last))
	}
	return r
}
