// Command visit checks ringtrain on a GPU in one run, from binaries built elsewhere:
// scripts/gpu-check.sh calls it. It runs a fixed list of steps, each with a time limit
// of its own, and continues after a failure. It prints one table, and writes report.md,
// result.json and logs.tar.gz into a directory.
//
//	visit -root TREE -binaries DIR -out DIR [-emulator] [-rest] [-limit SECONDS]
//
// Exit code: 0 every step is ok, 1 one is not, 2 wrong usage.
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
	// grace is how long a command has for its last words once it is asked to quit, and
	// how long the visit then waits for a process that cannot be killed, as one that
	// hangs in the driver.
	grace time.Duration
}

// writing is kept from the limit for the report and the archive.
func (s settings) writing() time.Duration { return 5 * s.grace }

func parse(args []string, stderr io.Writer) (s settings, err error) {
	s.grace = 3 * time.Second
	f := flag.NewFlagSet("visit", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&s.root, "root", ".", "the tree that the binaries were built from")
	f.StringVar(&s.binaries, "binaries", "bin/check", "where the binaries are")
	f.StringVar(&s.out, "out", "", "where to write report.md, result.json and logs.tar.gz")
	f.BoolVar(&s.emulator, "emulator", false, "in miniature, on the stand-ins that the environment names")
	f.BoolVar(&s.rest, "rest", false, "the second visit: what the first leaves out, and what failed there")
	f.StringVar(&s.earlier, "earlier", "", "the first visit's result.json (default the one in -binaries or -out)")
	f.StringVar(&s.failed, "failed", "", "BINARY:TEST or STEP, separated by commas: run these again, instead of what -earlier names")
	seconds := f.Int("limit", 540, "seconds for everything")
	f.StringVar(&s.steps, "steps", "", "run only these steps, separated by commas")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	s.limit = time.Duration(*seconds) * time.Second
	switch {
	case f.NArg() > 0:
		return s, fmt.Errorf("%q is no flag", f.Arg(0))
	case s.out == "":
		return s, fmt.Errorf("-out must name a directory to write to")
	case s.limit <= s.writing():
		return s, fmt.Errorf("-limit must be more than the %v that writing the report may take", s.writing())
	}
	for _, path := range []*string{&s.root, &s.binaries, &s.out} {
		if *path, err = filepath.Abs(*path); err != nil {
			return s, err
		}
	}
	return s, os.MkdirAll(s.out, 0o755)
}

// choose picks the steps of this run.
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

// visitAll runs the steps and writes what they found.
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
