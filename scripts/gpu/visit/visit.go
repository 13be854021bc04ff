package main

import (
	"context"
	"time"
)

// A visit is one run of the program.
type visit struct {
	*runner
	suites    suites
	trainings trainings
	begun     time.Time
	python    python
	arch      string // of the GPU; 90 until doctor reports it
}

func newVisit(ctx context.Context, s settings, work string) *visit {
	begun, r, p := time.Now(), newRunner(ctx, s, work), s.find()
	if !s.emulator {
		r.env = append(r.env, librarySettings(r.driver(), p)...)
	}
	return &visit{runner: r, suites: suites{r}, trainings: trainings{r}, begun: begun, python: p, arch: "90"}
}

// step runs one step.
func (v *visit) step(s step, allowed time.Duration) *result {
	r := &result{Step: s.name}
	if v.ctx.Err() != nil || allowed <= 0 {
		r.Verdict = notRun
		return r
	}
	begin := time.Now()
	v.until = begin.Add(allowed)
	s.do(v, r)
	r.Seconds = time.Since(begin).Seconds()
	r.judge()
	return r
}
