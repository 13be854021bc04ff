package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verdicts of a step.
const (
	ok      = "ok"
	failed  = "FAILED"
	skipped = "SKIPPED" // nothing failed, but an essential test was skipped
	notRun  = "NOT RUN" // no time was left, or the visit was interrupted
)

// A step is one row of the table.
type step struct {
	name  string
	about string
	// need is the expected number of seconds on a GPU, which earlier steps leave to this one.
	// limit is the most that it may take.
	need, limit int
	trial       int // limit in seconds on the emulator
	do          func(v *visit, r *result)
}

// allowed returns how long the first of the steps may take: at most its limit, and not the
// time that later steps need. If the time is too short for all, each gets its share.
func allowed(steps []step, left time.Duration, emulator bool) time.Duration {
	limit, need, all := time.Duration(steps[0].limit), 0, 0
	if emulator {
		limit = time.Duration(steps[0].trial)
	}
	for i, s := range steps {
		own := s.need
		if emulator {
			own = s.trial
		}
		if all += own; i == 0 {
			need = own
		}
	}
	if left <= 0 || all == 0 {
		return 0
	}
	later := time.Duration(all-need) * time.Second
	if wanted := time.Duration(all) * time.Second; left < wanted {
		later = time.Duration(float64(later) * float64(left) / float64(wanted))
	}
	return min(limit*time.Second, left-later)
}

// A result is the outcome of a step.
type result struct {
	Step    string  `json:"step"`
	Verdict string  `json:"verdict"`
	Seconds float64 `json:"seconds"`
	Passed  int     `json:"passed"` // tests without subtests, or commands
	Skipped int     `json:"skipped"`
	Failed  int     `json:"failed"`
	// Broken lists failed tests as BINARY:TEST. The second visit runs them again.
	Broken   []string `json:"broken,omitempty"`
	Figures  []string `json:"figures,omitempty"`  // measurements and versions, one line each
	Failures []string `json:"failures,omitempty"` // one line each
	Skips    []string `json:"skips,omitempty"`    // with the reasons
	Tables   []string `json:"-"`                  // Markdown, only for report.md
	missed   bool     // an essential test was skipped
}

// fail counts a failure and adds its description.
func (r *result) fail(format string, args ...any) {
	r.Failed++
	r.Failures = append(r.Failures, fmt.Sprintf(format, args...))
}

// skip counts a skipped test. If it matters, the step is not ok.
func (r *result) skip(matters bool, format string, args ...any) {
	r.Skipped++
	r.missed = r.missed || matters
	r.Skips = append(r.Skips, fmt.Sprintf(format, args...))
}

func (r *result) figure(format string, args ...any) {
	r.Figures = append(r.Figures, fmt.Sprintf(format, args...))
}

// quote adds test output that contains one of the texts as figures.
func (r *result) quote(got verdicts, texts ...string) {
	var lines []string
	for test, said := range got.said {
		for _, line := range said {
			if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(line, text) }) {
				_, line, _ = strings.Cut(strings.TrimSpace(line), ": ")
				lines = append(lines, test+": "+line)
			}
		}
	}
	slices.Sort(lines)
	for _, line := range lines {
		r.figure("%s", line)
	}
}

// judge decides the verdict from the counts.
func (r *result) judge() {
	switch {
	case r.Failed > 0:
		r.Verdict = failed
	case r.missed || r.Skipped > 0 && r.Passed == 0:
		r.Verdict = skipped
	case r.Passed == 0:
		r.Verdict = failed
		r.Failures = append(r.Failures, "the step checked nothing")
	default:
		r.Verdict = ok
	}
}
