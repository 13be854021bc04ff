package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"

	"github.com/ringtrain/ringtrain/bench"
)

// A record is what a program says of one size.
type record struct {
	bench.Record
	Mean *float64 `json:"mean_us"` // not every program has it
}

// A measurement is what one program said in one round.
type measurement struct {
	ranks, round int
	program      string
	records      []record
}

var fileName = regexp.MustCompile(`^(\d+)-(\d+)-([a-z-]+)\.json$`)

// readAll reads all files of a directory. A wrong result makes all figures
// worthless, so it is an error.
func readAll(dir fs.FS) ([]measurement, error) {
	files, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, err
	}
	var runs []measurement
	for _, f := range files {
		parts := fileName.FindStringSubmatch(path.Base(f.Name()))
		if parts == nil {
			return nil, fmt.Errorf("%s is not named RANKS-ROUND-PROGRAM.json", f.Name())
		}
		r := measurement{program: parts[3]}
		r.ranks, _ = strconv.Atoi(parts[1]) // digits
		r.round, _ = strconv.Atoi(parts[2])
		text, err := fs.ReadFile(dir, f.Name())
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &r.records); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		runs = append(runs, r)
	}
	slices.SortFunc(runs, func(a, b measurement) int {
		return cmpAll(a.ranks-b.ranks, a.round-b.round, place(a.program)-place(b.program))
	})
	return runs, nil
}

func cmpAll(differences ...int) int {
	for _, d := range differences {
		if d != 0 {
			return d
		}
	}
	return 0
}

func (r measurement) check() error {
	if len(r.records) == 0 {
		return fmt.Errorf("there are no records")
	}
	for _, x := range r.records {
		switch {
		case x.Ranks != r.ranks:
			return fmt.Errorf("a record is of %d ranks", x.Ranks)
		case !(x.Time > 0):
			return fmt.Errorf("%s took %v us", formatSize(x.Size), x.Time)
		case x.Wrong == nil:
			return fmt.Errorf("%s: nobody looked whether the results were right", formatSize(x.Size))
		case *x.Wrong != 0:
			return fmt.Errorf("%s: %d elements of results were wrong: no figure means anything", formatSize(x.Size), *x.Wrong)
		}
	}
	return nil
}

// writeCSV writes every record of every run.
func writeCSV(name string, runs []measurement) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	out := csv.NewWriter(f)
	_ = out.Write([]string{"ranks", "round", "program", "transport", "size", "time_us", "mean_us", "p99_us", "algbw", "busbw", "iterations"}) // Error tells
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	for _, r := range runs {
		for _, x := range r.records {
			mean := ""
			if x.Mean != nil {
				mean = number(*x.Mean)
			}
			_ = out.Write([]string{
				strconv.Itoa(r.ranks), strconv.Itoa(r.round), r.program, x.Transport, strconv.Itoa(x.Size),
				number(x.Time), mean, number(x.P99), number(x.AlgBW), number(x.BusBW), strconv.Itoa(x.Iterations),
			})
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		_ = f.Close() // the first error counts
		return err
	}
	return f.Close()
}
