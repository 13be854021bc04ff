package main

import (
	"time"

	"github.com/ringtrain/ringtrain/bench"
)

// The first warmUp steps do not count: they touch memory and compile graphs. The final
// loss is the mean of the last lastSteps. step.py has the same numbers.
const (
	warmUp    = 30
	lastSteps = 20
)

// A record is the output of a program for one model.
type record struct {
	Model  string  `json:"model"`
	Median float64 `json:"median_us"`
	Least  float64 `json:"least_us"`
	Steps  int     `json:"steps"`      // that count
	First  float64 `json:"first_loss"` // of the first step, mean over the rows
	Last   float64 `json:"last_loss"`
	About  string  `json:"about"` // version, and what multiplies matrices
}

// A clock records the times and losses of steps.
type clock struct {
	steps  int // including warmUp
	took   []float64
	losses []float64
}

func newClock(counted int) *clock { return &clock{steps: warmUp + counted} }

// add records one step.
func (c *clock) add(took time.Duration, loss float64) {
	c.took = append(c.took, float64(took)/float64(time.Microsecond))
	c.losses = append(c.losses, loss)
}

// record returns the record of the steps after warmUp.
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
