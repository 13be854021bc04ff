// Command peers turns the files that scripts/bench-peers.sh gathers into tables: for
// each number of ranks, the times of allreduce by ringtrain and other libraries, and
// their ratios. It also measures memory, which bounds them.
//
//	peers table [-csv FILE] [-require RATIO] [-note TEXT]... DIR
//	peers memory RANKS
//
// DIR holds RANKS-ROUND-PROGRAM.json files, in the format of "ringtrain bench
// collective --json". Those of the program memory come from the second form. The
// tables are Markdown, on stdout. The exit code is 1 if a result was wrong, if the
// files do not fit together, or if a ratio is lower than required.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/scripts/peers/rounds"
)

// boundSize is the size whose bound is shown, and the size of the vectors on which
// memory is measured. An allreduce of it is limited by bandwidth, not by latency.
const boundSize = 64 << 20

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	switch {
	case len(args) > 0 && args[0] == "table":
		return table(args[1:], stdout, stderr)
	case len(args) == 2 && args[0] == "memory":
		if ranks, err := strconv.Atoi(args[1]); err == nil && ranks > 0 {
			return memory(ranks, boundSize, stdout, stderr)
		}
	}
	fmt.Fprintln(stderr, "usage: peers table [flags] DIR | peers memory RANKS; see peers table -help")
	return 2
}

// memory measures with one thread per rank, but no more than there are cores.
func memory(ranks, bytes int, stdout, stderr io.Writer) int {
	m := bench.MeasureMemory(min(ranks, runtime.NumCPU()), bytes)
	if err := json.NewEncoder(stdout).Encode(m); err != nil {
		fmt.Fprintf(stderr, "peers: %v\n", err)
		return 1
	}
	return 0
}

func table(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("peers table", flag.ContinueOnError)
	flags.SetOutput(stderr)
	csvFile := flags.String("csv", "", "`file` for all records, with program and round")
	least := flags.Float64("require", 0, "minimum `ratio` of a peer's time to ringtrain's, with either kind of memory")
	notes := rounds.Notes(flags)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() != 1 {
		fmt.Fprintln(stderr, "peers: give one directory; see -help")
		return 2
	}
	if err := report(flags.Arg(0), *csvFile, *least, *notes, stdout); err != nil {
		fmt.Fprintf(stderr, "peers: %v\n", err)
		return 1
	}
	return 0
}

// report writes the tables, and the CSV file if it has a name. If ratios are lower
// than required, it writes them too and returns an error.
func report(dir, csvFile string, least float64, notes []string, out io.Writer) error {
	runs, err := readAll(os.DirFS(dir))
	if err != nil {
		return err
	}
	if csvFile != "" {
		if err := writeCSV(csvFile, runs); err != nil {
			return err
		}
	}
	results, err := summarize(runs)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, r := range results {
		r.write(&text)
	}
	for _, note := range notes {
		fmt.Fprintf(&text, "\n%s\n", note)
	}
	if _, err := io.WriteString(out, text.String()); err != nil {
		return err
	}
	var slow []error
	for _, r := range results {
		slow = append(slow, r.below(least)...)
	}
	return errors.Join(slow...)
}
