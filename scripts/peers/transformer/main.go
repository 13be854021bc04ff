// Command transformer prepares the text and the rows with which
// scripts/bench-transformer.sh trains one model in ringtrain and in PyTorch, and compares
// what they print.
//
//	transformer text DIR BYTES FILE
//	transformer batches TEXT CONTEXT ROWS STEPS FILE
//	transformer table [-csv FILE] [-require RATIO] [-note TEXT]... DIR
//
// The first form writes the first BYTES of the Go source files below DIR, in a random but
// fixed order, so that the end of the text resembles its beginning. The second writes the
// rows that "ringtrain train --data text:TEXT" takes in each step, and those that it holds
// out; see batches. The third reads CASE-ROUND-PROGRAM.json in DIR, the events of all
// programs, and writes Markdown tables to stdout. Its exit code is 1 if the programs do not
// train the same, or if a ratio is lower than required.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
)

// errUsage is the error of a wrong command line.
var errUsage = errors.New("usage: transformer text DIR BYTES FILE | transformer batches TEXT CONTEXT ROWS STEPS FILE | transformer table [flags] DIR")

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	err := dispatch(args, stdout, stderr)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "transformer: %v\n", err)
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
}

func dispatch(args []string, stdout, stderr io.Writer) error {
	switch {
	case len(args) > 0 && args[0] == "table":
		return table(args[1:], stdout, stderr)
	case len(args) == 4 && args[0] == "text":
		n, err := numbers(args[2:3])
		if err != nil {
			return err
		}
		return writeText(args[1], n[0], args[3])
	case len(args) == 6 && args[0] == "batches":
		n, err := numbers(args[2:5])
		if err != nil {
			return err
		}
		return writeBatches(args[1], shape{context: n[0], rows: n[1], steps: n[2]}, args[5])
	}
	return errUsage
}

// numbers parses whole numbers of at least 1.
func numbers(args []string) ([]int, error) {
	var all []int
	for _, a := range args {
		n, err := strconv.Atoi(a)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%w: %q is not a number of at least 1", errUsage, a)
		}
		all = append(all, n)
	}
	return all, nil
}
