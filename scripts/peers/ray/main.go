// Command ray writes the table of scripts/bench-ray.sh, which compares trainings with a
// parameter server by ringtrain with those by actors of Ray; see parameter_server.py.
//
//	ray [-csv FILE] [-require RATIO] [-note TEXT]... DIR
//
// DIR has a file TRAINING-ROUND-PROGRAM.json for each run. The exit code is 1 if a file is
// not as it should be, or if the ratio of ringtrain's speed to Ray's is lower than required.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/ringtrain/ringtrain/scripts/peers/rounds"
)

func main() {
	os.Exit(exit(os.Args[1:], os.Stdout, os.Stderr))
}

func exit(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("ray", flag.ContinueOnError)
	flags.SetOutput(stderr)
	csvFile := flags.String("csv", "", "`file` for all runs")
	least := flags.Float64("require", 0, "minimum `ratio` of ringtrain's speed to Ray's")
	notes := rounds.Notes(flags)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil || flags.NArg() != 1 {
		fmt.Fprintln(stderr, "usage: ray [-csv FILE] [-require RATIO] [-note TEXT]... DIR")
		return 2
	}
	runs, err := readAll(os.DirFS(flags.Arg(0)))
	if err != nil {
		err = fmt.Errorf("%s: %w", flags.Arg(0), err)
	}
	if err == nil && *csvFile != "" {
		err = writeCSV(*csvFile, runs)
	}
	if err == nil {
		err = write(stdout, runs, *least, *notes)
	}
	if err != nil {
		fmt.Fprintf(stderr, "ray: %v\n", err)
		return 1
	}
	return 0
}
