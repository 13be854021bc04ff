package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/scripts/peers/rounds"
)

// A measurement is the output of one program in one round.
type measurement struct {
	ranks, round int
	program      string
	records      []bench.Record // of all programs except machineMemory
	memory       bench.Memory   // of machineMemory
}

var fileName = regexp.MustCompile(`^(\d+)-(\d+)-([a-z-]+)\.json$`)

// readAll reads all files of a directory. A wrong result is an error, because it makes
// all figures worthless.
func readAll(dir fs.FS) ([]measurement, error) {
	var runs []measurement
	err := rounds.Read(dir, fileName, "RANKS-ROUND-PROGRAM.json", func(groups []string, text []byte) error {
		r := measurement{program: groups[2]}
		r.ranks, _ = strconv.Atoi(groups[0]) // digits
		r.round, _ = strconv.Atoi(groups[1])
		if err := r.parse(text); err != nil {
			return err
		}
		runs = append(runs, r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(runs, func(a, b measurement) int {
		return cmp.Or(a.ranks-b.ranks, a.round-b.round, programs.Index(a.program)-programs.Index(b.program), strings.Compare(a.program, b.program))
	})
	return runs, nil
}

// parse reads the program's output.
func (r *measurement) parse(text []byte) error {
	if r.program == machineMemory {
		err := json.Unmarshal(text, &r.memory)
		if m := r.memory; err == nil && !(m.Copy > 0 && m.Add > 0) {
			err = fmt.Errorf("memory copies at %v GB/s and adds at %v", m.Copy, m.Add)
		}
		return err
	}
	if err := json.Unmarshal(text, &r.records); err != nil {
		return err
	}
	return r.check()
}

func (r *measurement) check() error {
	if len(r.records) == 0 {
		if r.program == bareExchange { // measured only for 2 ranks
			return nil
		}
		return fmt.Errorf("there are no records")
	}
	for _, x := range r.records {
		switch {
		case x.Ranks != r.ranks:
			return fmt.Errorf("a record has %d ranks", x.Ranks)
		case !(x.Time > 0 && x.Mean > 0 && x.Read > 0):
			return fmt.Errorf("%s took %v us, %v in the mean, and %v with a check of the result", formatSize(x.Size), x.Time, x.Mean, x.Read)
		case x.Wrong == nil:
			return fmt.Errorf("%s: the results were not checked", formatSize(x.Size))
		case *x.Wrong != 0:
			return fmt.Errorf("%s: %d elements of results were wrong, so no figure means anything", formatSize(x.Size), *x.Wrong)
		}
	}
	return nil
}

// writeCSV writes every record of every program. Memory has none.
func writeCSV(name string, runs []measurement) error {
	lines := [][]string{{"ranks", "round", "program", "transport", "size", "time_us", "mean_us", "p99_us", "read_us", "algbw", "busbw", "iterations"}}
	for _, r := range runs {
		for _, x := range r.records {
			lines = append(lines, []string{
				strconv.Itoa(r.ranks), strconv.Itoa(r.round), r.program, x.Transport, strconv.Itoa(x.Size), rounds.Exact(x.Time), rounds.Exact(x.Mean),
				rounds.Exact(x.P99), rounds.Exact(x.Read), rounds.Exact(x.AlgBW), rounds.Exact(x.BusBW), strconv.Itoa(x.Iterations),
			})
		}
	}
	return rounds.WriteCSV(name, lines)
}
