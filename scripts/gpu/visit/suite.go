package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A suite is a selection of the tests of one binary.
type suite struct {
	name   string // of the log
	binary string
	dir    string // in the tree; the working directory of the tests
	run    string // pattern; "" for all
	skip   string // pattern of tests to leave out
	trial  string // replaces run on the emulator
	// Tests that must pass. On the emulator, only those that trial matches must.
	essential []string
	env       []string
	limit     time.Duration
}

// suites runs test binaries.
type suites struct{ *runner }

// run runs tests, adds their results to r, and runs failed tests again.
func (x suites) run(r *result, s suite) verdicts {
	pattern := s.run
	if x.emulator && s.trial != "" {
		pattern = s.trial
	}
	args := []string{x.program(s.binary), "-test.v"}
	if pattern != "" {
		args = append(args, "-test.run", pattern)
	}
	if s.skip != "" {
		args = append(args, "-test.skip", s.skip)
	}
	limit := max(x.left()-3*x.grace, x.left()/3)
	if s.limit > 0 {
		limit = min(limit, s.limit)
	}
	// The binary's own time limit ends first, because it prints which tests were running.
	args = append(args, "-test.timeout", max(limit, x.grace).Round(time.Millisecond).String())
	o := x.execute(command{name: s.name, dir: filepath.Join(x.root, s.dir), env: s.env, args: args, limit: limit + x.grace})
	got := parseTests(afterCommand(o.text))
	count(r, s, got, o)
	x.essential(r, s, pattern, got)
	x.again(r, s, got.broken())
	return got
}

// count adds the results of tests to r.
func count(r *result, s suite, got verdicts, o outcome) {
	r.Passed += len(got.of("PASS"))
	for _, name := range got.of("SKIP") {
		r.skip(false, "%s: %s", name, got.why(name))
	}
	broken := got.broken()
	for _, name := range broken {
		r.fail("%s: %s", name, got.why(name))
		r.Broken = append(r.Broken, s.binary+":"+name)
	}
	if problem := o.problem(); problem != "" && (len(broken) == 0 || o.late) {
		r.fail("%s: %s: %s", s.binary, problem, brief(lastLines(got.last, 6), 3))
	}
}

// essential checks that the essential tests ran. It marks the step if one was skipped.
func (x suites) essential(r *result, s suite, pattern string, got verdicts) {
	if len(got.ended) == 0 && r.Failed > 0 {
		return // a failure already says why nothing ran
	}
	top, _, _ := strings.Cut(pattern, "/")
	for _, name := range s.essential {
		if x.emulator && !regexp.MustCompile(top).MatchString(name) {
			continue
		}
		switch got.fate(name) {
		case absent:
			r.fail("%s did not run", name)
		case omitted:
			r.missed = true
		}
	}
}

// mostAgain is the maximum number of tests of a suite that run again.
const mostAgain = 3

// again runs failed tests one by one, because an earlier fault breaks all later tests of its
// process. The driver and compute-sanitizer then report where the fault is.
func (x suites) again(r *result, s suite, tests []string) {
	sanitizer := x.sanitizer()
	for i, test := range tests {
		if i == mostAgain || x.left() < 10*time.Second {
			r.figure("%d failed tests of %s were not run again, for lack of time or because they are too many", len(tests)-i, s.binary)
			return
		}
		args := []string{x.program(s.binary), "-test.v", "-test.run", exactly(test)}
		c := command{name: s.name + "-alone", dir: filepath.Join(x.root, s.dir), args: args, env: append(s.env[:len(s.env):len(s.env)], "CUDA_LAUNCH_BLOCKING=1"), limit: 30 * time.Second}
		note(r, test+" alone, with CUDA_LAUNCH_BLOCKING=1", x.execute(c), test)
		if sanitizer != "" && x.left() > 15*time.Second {
			c.name, c.env, c.limit = s.name+"-memcheck", s.env, 45*time.Second
			c.args = append([]string{sanitizer, "--tool", "memcheck", "--error-exitcode", "9", "--print-limit", "20"}, args...)
			note(r, test+" alone, under memcheck", x.execute(c), test)
		}
	}
}

// note adds the result of running a test again. It does not count as another test.
func note(r *result, what string, o outcome, test string) {
	if problem := o.problem(); problem != "" {
		r.Failures = append(r.Failures, fmt.Sprintf("%s: %s: %s", what, problem, brief(errorsOf(o.text, test), 3)))
		return
	}
	r.Failures = append(r.Failures, what+": passed")
}

// errorsOf returns the lines of compute-sanitizer, or if it wrote none, those of the test.
func errorsOf(text, test string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "=========") && len(strings.TrimSpace(line)) > 10 && !strings.Contains(line, "COMPUTE-SANITIZER") {
			lines = append(lines, strings.TrimLeft(line, "= "))
		}
	}
	if lines == nil {
		lines = []string{parseTests(text).why(test)}
	}
	return lines
}

// exactly returns a pattern that matches only this test.
func exactly(test string) string {
	var parts []string
	for part := range strings.SplitSeq(test, "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	return strings.Join(parts, "/")
}

func lastLines(text string, most int) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if crash.MatchString(text) {
		return lines[:min(len(lines), most)]
	}
	return lines[max(0, len(lines)-most):]
}

// sanitizer returns the path of compute-sanitizer, or "" without one or without a GPU.
func (x suites) sanitizer() string {
	if x.emulator {
		return ""
	}
	if path, err := exec.LookPath("compute-sanitizer"); err == nil {
		return path
	}
	found, _ := filepath.Glob("/usr/local/cuda*/bin/compute-sanitizer") // the pattern is well-formed
	if len(found) == 0 {
		return ""
	}
	return newest(found)
}

// few returns settings that shorten comparisons with the CPU on the emulator, which is slow.
func (x suites) few() []string {
	if x.emulator {
		return []string{"RINGTRAIN_PARITY_STEPS=2"}
	}
	return nil
}
