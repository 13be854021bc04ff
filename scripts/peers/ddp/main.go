// Command ddp writes the table of scripts/bench-ddp.sh, which compares a data-parallel
// training by ringtrain with one by PyTorch's DistributedDataParallel; see ddp.py.
//
//	ddp [-csv FILE] [-require RATIO] [-note TEXT]... DIR
//
// DIR has a file WORKERS-ROUND-PROGRAM.json for each run. The exit code is 1 if a file is
// not as it should be, or if the ratio of ringtrain's speed to a peer's is lower than
// required.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/scripts/peers/rounds"
)

// ours is the program with which all others are compared.
const ours = "ringtrain"

// programs have titles, in the order of the rows. Others come last.
var programs = rounds.Programs{
	{ours, "ringtrain"},
	{"ringtrain-openblas", "ringtrain, OpenBLAS"},
	{"pypi", "PyTorch DDP"},
}

var fileName = regexp.MustCompile(`^(\d+)-(\d+)-([a-z-]+)\.json$`)

// A run is what one program reports of one training run. ringtrain reports it as its result
// event.
type run struct {
	program string
	round   int

	Workers int     `json:"workers"`
	Steps   int     `json:"steps"`
	Rate    float64 `json:"samples_per_second"`
	Loss    float64 `json:"loss"`  // of the test rows, at the end
	BLAS    string  `json:"blas"`  // of ringtrain
	About   string  `json:"about"` // of the others
}

func main() {
	os.Exit(exit(os.Args[1:], os.Stdout, os.Stderr))
}

func exit(args []string, stdout, stderr io.Writer) int {
	c := rounds.Command[run]{Name: "ddp", Peer: "each peer's", Read: readAll, WriteCSV: writeCSV, Write: write}
	return c.Exit(args, stdout, stderr)
}

// readAll reads all files of a directory, in the order of the table.
func readAll(dir fs.FS) ([]run, error) {
	var runs []run
	err := rounds.Read(dir, fileName, "WORKERS-ROUND-PROGRAM.json", func(groups []string, text []byte) error {
		r := run{program: groups[2]}
		r.round, _ = strconv.Atoi(groups[1]) // digits
		if err := json.Unmarshal(text, &r); err != nil {
			return err
		}
		if r.Steps < 1 || !(r.Rate > 0) || strconv.Itoa(r.Workers) != groups[0] {
			return fmt.Errorf("%d workers made %d steps with %v samples/s", r.Workers, r.Steps, r.Rate)
		}
		runs = append(runs, r)
		return nil
	})
	slices.SortFunc(runs, func(a, b run) int {
		return cmp.Or(a.Workers-b.Workers, programs.Index(a.program)-programs.Index(b.program), strings.Compare(a.program, b.program), a.round-b.round)
	})
	if err == nil && len(runs) == 0 {
		err = errors.New("there are no files")
	}
	return runs, err
}

// write writes a row for each program with each number of workers. It returns an error
// if a peer is too fast.
func write(w io.Writer, runs []run, least float64, notes []string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### Data-parallel training of the perceptron, batch 128 per worker, %d steps\n\nSamples/s of all workers: median [minimum-maximum] of the rounds. Above a ratio of 1, ringtrain is faster.\n\n", runs[0].Steps)
	rounds.Head(&b, "workers", "program", "samples/s", "ringtrain's / its", "test loss", "with")
	var slow []error
	var base []float64
	for same := range chunks(runs) {
		var rates, losses []float64
		for _, r := range same {
			rates, losses = append(rates, r.Rate), append(losses, r.Loss)
		}
		first, ratio := same[0], ""
		if first.program == ours {
			base = rates
		} else if len(base) == len(rates) {
			x := rounds.Ratio(base, rates)
			ratio = fmt.Sprintf("%.2f", x)
			if x < least && !strings.HasPrefix(first.program, ours) {
				slow = append(slow, fmt.Errorf("%d workers: ringtrain's speed is %.2f times that of %s, less than %v", first.Workers, x, programs.Title(first.program), least))
			}
		}
		rounds.Row(&b, strconv.Itoa(first.Workers), programs.Title(first.program), rounds.Spread(rates, whole), ratio, fmt.Sprintf("%.3f", bench.Median(losses)), first.BLAS+first.About)
	}
	for _, note := range notes {
		fmt.Fprintf(&b, "\n%s\n", note)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	return errors.Join(slow...)
}

// chunks yields the runs of each program with each number of workers.
func chunks(runs []run) func(yield func([]run) bool) {
	return func(yield func([]run) bool) {
		for len(runs) > 0 {
			n := 1
			for n < len(runs) && runs[n].Workers == runs[0].Workers && runs[n].program == runs[0].program {
				n++
			}
			if !yield(runs[:n]) {
				return
			}
			runs = runs[n:]
		}
	}
}

func whole(x float64) string { return fmt.Sprintf("%.0f", x) }

// writeCSV writes every run.
func writeCSV(name string, runs []run) error {
	lines := [][]string{{"workers", "round", "program", "steps", "samples_per_second", "loss", "with"}}
	for _, r := range runs {
		lines = append(lines, []string{
			strconv.Itoa(r.Workers), strconv.Itoa(r.round), r.program, strconv.Itoa(r.Steps), rounds.Exact(r.Rate), rounds.Exact(r.Loss), r.BLAS + r.About,
		})
	}
	return rounds.WriteCSV(name, lines)
}
