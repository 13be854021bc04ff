// Command visit checks ringtrain on a GPU in one run, with binaries built elsewhere.
// scripts/gpu-check.sh calls it. It runs a fixed list of steps, each with its own time
// limit, and continues after failures. It prints one table, and writes report.md,
// result.json and logs.tar.gz into a directory.
//
//	visit -root TREE -binaries DIR -out DIR [-emulator] [-rest] [-limit SECONDS]
//
// Exit code: 0 if every step is ok, 1 if one is not, 2 for wrong usage.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Exit codes.
const (
	exitOK = iota
	exitFailed
	exitUsage
)

// settings are the flags.
type settings struct {
	root, binaries, out string
	emulator, rest      bool
	earlier, failed     string
	limit               time.Duration
	steps               string
	// grace is how long a command may take to end after SIGQUIT, and how long the visit then
	// waits for a process that cannot be killed, such as one that hangs in the driver.
	grace time.Duration
	// find returns the interpreter that trains with PyTorch.
	find func() python
}

// writing returns the part of the limit that is reserved for the report and the archive.
func (s settings) writing() time.Duration { return 5 * s.grace }

func parse(args []string, stderr io.Writer) (s settings, err error) {
	s.grace, s.find = 3*time.Second, findPython
	f := flag.NewFlagSet("visit", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&s.root, "root", ".", "source tree of the binaries")
	f.StringVar(&s.binaries, "binaries", "bin/check", "directory of the binaries")
	f.StringVar(&s.out, "out", "", "directory for report.md, result.json and logs.tar.gz")
	f.BoolVar(&s.emulator, "emulator", false, "run a small version on the emulator that the environment names")
	f.BoolVar(&s.rest, "rest", false, "second visit: what the first leaves out, and what failed there")
	f.StringVar(&s.earlier, "earlier", "", "result.json of the first visit (default: the one in -binaries or -out)")
	f.StringVar(&s.failed, "failed", "", "BINARY:TEST or STEP, separated by commas: run these again, not the failures in -earlier")
	seconds := f.Int("limit", 540, "time limit of the visit, in seconds")
	f.StringVar(&s.steps, "steps", "", "run only these steps, separated by commas")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	s.limit = time.Duration(*seconds) * time.Second
	switch {
	case f.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q; visit takes only flags", f.Arg(0))
	case s.out == "":
		return s, fmt.Errorf("-out is missing: name a directory to write to")
	case s.limit <= s.writing():
		return s, fmt.Errorf("-limit must be more than %v, which is reserved for the report", s.writing())
	}
	for _, path := range []*string{&s.root, &s.binaries, &s.out} {
		if *path, err = filepath.Abs(*path); err != nil {
			return s, err
		}
	}
	return s, os.MkdirAll(s.out, 0o755)
}

// choose returns the steps to run.
func choose(s settings) ([]step, error) {
	steps := first()
	if s.rest {
		steps = second()
	}
	if s.steps == "" {
		return steps, nil
	}
	known := append(first(), second()...)
	var chosen []step
	for name := range strings.SplitSeq(s.steps, ",") {
		i := slices.IndexFunc(known, func(k step) bool { return k.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no step %q; the steps are %s", name, names(known))
		}
		chosen = append(chosen, known[i])
	}
	return chosen, nil
}

func names(steps []step) string {
	var all []string
	for _, s := range steps {
		all = append(all, s.name)
	}
	return strings.Join(all, ", ")
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if err == nil {
		var steps []step
		if steps, err = choose(s); err == nil {
			return visitAll(ctx, s, steps, stdout, stderr)
		}
	}
	if err == flag.ErrHelp {
		return exitOK
	}
	fmt.Fprintln(stderr, "visit:", err)
	return exitUsage
}

// visitAll runs the steps and writes the results.
func visitAll(ctx context.Context, s settings, steps []step, stdout, stderr io.Writer) int {
	work, err := os.MkdirTemp("", "ringtrain-visit-")
	if err != nil {
		fmt.Fprintln(stderr, "visit:", err)
		return exitFailed
	}
	defer os.RemoveAll(work)
	v := newVisit(ctx, s, work)
	rest := v.begun.Add(s.limit - s.writing())
	found := &summary{settings: s, begun: v.begun}
	for i, k := range steps {
		found.results = append(found.results, v.step(k, allowed(steps[i:], time.Until(rest), s.emulator)))
	}
	found.interrupted = ctx.Err() != nil
	if err := found.write(stdout, v.logsDir()); err != nil {
		fmt.Fprintln(stderr, "visit: writing the report:", err)
		return exitFailed
	}
	for _, r := range found.results {
		if r.Verdict != ok {
			return exitFailed
		}
	}
	return exitOK
}
