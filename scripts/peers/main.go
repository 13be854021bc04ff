// Command peers turns the files that scripts/bench-peers.sh has gathered into
// tables: for each number of ranks, the times of ringtrain's allreduce beside
// those of other libraries, and the ratios.
//
//	peers [-csv FILE] [-require RATIO] [-note TEXT]... DIR
//
// DIR holds RANKS-ROUND-PROGRAM.json files, in the format of "ringtrain bench
// collective --json". The tables are Markdown, on stdout. It exits with 1 if a
// result was wrong, if the files do not fit together, or if a ratio is less
// than asked for.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.SetOutput(stderr)
	csvFile := flags.String("csv", "", "`file` for all records, with program and round")
	least := flags.Float64("require", 0, "the least `ratio` of a peer's time to ringtrain's")
	var notes []string
	flags.Func("note", "`text` below the tables; may be repeated", func(text string) error {
		notes = append(notes, text)
		return nil
	})
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() != 1 {
		fmt.Fprintln(stderr, "peers: give one directory; see -help")
		return 2
	}
	if err := report(flags.Arg(0), *csvFile, *least, notes, stdout); err != nil {
		fmt.Fprintf(stderr, "peers: %v\n", err)
		return 1
	}
	return 0
}

// report writes the tables, and the CSV file if it has a name. It writes them
// too when ratios are less than they must be, which is its error then.
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
