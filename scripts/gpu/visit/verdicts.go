package main

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// verdicts are the results of tests, from the output of a test binary with -test.v.
type verdicts struct {
	ended map[string]string   // PASS, SKIP or FAIL; "" if the test did not end
	said  map[string][]string // output of each test, in lines
	last  string              // the output from a crash on, or all of it
}

var (
	began    = regexp.MustCompile(`^=== (?:RUN|NAME|CONT)\s+(\S+)`)
	finished = regexp.MustCompile(`^\s*--- (PASS|SKIP|FAIL): (\S+)`)
	crash    = regexp.MustCompile(`(?m)^(panic: |fatal error: |SIG[A-Z]+: |unexpected fault|CUDA_ERROR)`)
)

func parseTests(text string) verdicts {
	v := verdicts{ended: map[string]string{}, said: map[string][]string{}}
	current := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := began.FindStringSubmatch(line); m != nil {
			current = m[1]
			if _, known := v.ended[current]; !known {
				v.ended[current] = ""
			}
		} else if m := finished.FindStringSubmatch(line); m != nil {
			current = m[2]
			v.ended[current] = m[1]
		} else if !strings.HasPrefix(line, "===") && strings.TrimSpace(line) != "" {
			v.said[current] = append(v.said[current], line)
		}
	}
	if at := crash.FindStringIndex(text); at != nil {
		v.last = text[at[0]:]
	} else {
		v.last = text
	}
	return v
}

// of returns the tests with this result, without those that only have such subtests.
func (v verdicts) of(end string) (names []string) {
	for name, how := range v.ended {
		if how == end && !v.hasSubtest(name, func(how string) bool { return end == "PASS" || how == end }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (v verdicts) hasSubtest(name string, is func(how string) bool) bool {
	for other, how := range v.ended {
		if strings.HasPrefix(other, name+"/") && is(how) {
			return true
		}
	}
	return false
}

// broken returns the tests that failed, and those that were running when the process ended.
func (v verdicts) broken() []string {
	hanging := v.of("")
	all := slices.Clone(hanging)
	for _, name := range v.of("FAIL") {
		if !slices.ContainsFunc(hanging, func(h string) bool { return strings.HasPrefix(h, name+"/") }) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// A fate is the result of a test and its subtests.
type fate int

const (
	absent fate = iota // it did not run
	passed
	omitted // it, or a subtest, was skipped
	broke
)

// fate returns the fate of a test.
func (v verdicts) fate(name string) fate {
	how, ran := v.ended[name]
	if !ran {
		return absent
	}
	for _, c := range []struct {
		ends []string
		fate fate
	}{{[]string{"", "FAIL"}, broke}, {[]string{"SKIP"}, omitted}} {
		is := func(how string) bool { return slices.Contains(c.ends, how) }
		if is(how) || v.hasSubtest(name, is) {
			return c.fate
		}
	}
	return passed
}

// why returns at most three lines of a test's output. For a failure they begin with the first
// error.
func (v verdicts) why(name string) string {
	lines := v.said[name]
	if v.ended[name] == "" && len(lines) == 0 || crash.MatchString(strings.Join(lines, "\n")) {
		lines = strings.Split(strings.TrimSpace(v.last), "\n")
		if at := slices.IndexFunc(lines, crash.MatchString); at > 0 {
			lines = lines[at:]
		}
	}
	if at := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "Error:") }); at >= 0 {
		lines = lines[at:]
	}
	return brief(lines, 3)
}

// noise matches lines that do not explain a failure.
var noise = regexp.MustCompile(`^(Error Trace:|Test:|FAIL$|PASS$|exit status \d+$|--- )`)

// brief joins the first informative lines into one.
func brief(lines []string, most int) string {
	var said []string
	for _, line := range lines {
		line = strings.Join(strings.Fields(line), " ")
		if line == "" || noise.MatchString(line) {
			continue
		}
		if said = append(said, clip(strings.TrimPrefix(line, "Error: "), 300)); len(said) == most {
			break
		}
	}
	return cmp.Or(strings.Join(said, " / "), "no output")
}

// clip shortens a text to a number of bytes.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " ..."
}
