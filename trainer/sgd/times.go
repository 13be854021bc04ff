package sgd

import (
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/trainer/trace"
)

// Times are how long the stages of a step took. If workers are on several machines, the
// times over all workers are only as exact as their clocks agree.
type Times struct {
	Workers []WorkerTimes // by worker
	Compute time.Duration // from the begin of the first replica until all have gradients
	Reduce  time.Duration // from then until all have the sum
	Apply   time.Duration // from the first update's begin to the last one's end
}

// WorkerTimes are how long the stages took inside a worker, over all its devices.
type WorkerTimes struct {
	Compute, Apply time.Duration
}

// A stamp is when a replica ended each stage of a step, in nanoseconds of Unix time.
type stamp [4]int64

// The elements of a stamp.
const (
	began = iota
	computed
	reduced
	applied
)

// A clock tells Unix time that never goes back.
type clock struct{ begin time.Time }

func newClock() clock { return clock{time.Now()} }

func (c clock) now() int64 { return c.begin.UnixNano() + time.Since(c.begin).Nanoseconds() }

// timesOf returns the times of a step from the stamps of all replicas, by rank.
func timesOf(all []stamp, devices int) Times {
	begin, end := bounds(all)
	t := Times{
		Compute: time.Duration(end[computed] - begin[began]),
		Reduce:  time.Duration(max(0, end[reduced]-end[computed])),
		Apply:   time.Duration(end[applied] - begin[reduced]),
	}
	for worker := range slices.Chunk(all, devices) {
		begin, end := bounds(worker)
		t.Workers = append(t.Workers, WorkerTimes{
			Compute: time.Duration(end[computed] - begin[began]), Apply: time.Duration(end[applied] - begin[reduced])})
	}
	return t
}

// bounds returns when the first and the last replica ended each stage.
func bounds(stamps []stamp) (first, last stamp) {
	first, last = stamps[0], stamps[0]
	for _, s := range stamps[1:] {
		for i := range s {
			first[i], last[i] = min(first[i], s[i]), max(last[i], s[i])
		}
	}
	return first, last
}

// activities returns what each worker did in a step, for a trace. A stage of a worker ends when
// its last device ends it.
func activities(all []stamp, devices, step int) []trace.Activity {
	var out []trace.Activity
	worker := 0
	for part := range slices.Chunk(all, devices) {
		begin, end := bounds(part)
		at := begin[began]
		for i, name := range []string{"compute grad", "grad reduce", "apply grad"} {
			until := end[computed+i]
			out = append(out, trace.Activity{Worker: worker, Name: name, Began: time.Unix(0, at), Took: time.Duration(until - at), Args: map[string]any{"step": step}})
			at = until
		}
		worker++
	}
	return out
}
