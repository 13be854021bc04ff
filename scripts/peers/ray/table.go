package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/scripts/peers/rounds"
)

// ours is the program with which the other is compared.
const ours = "ringtrain"

// programs have titles, in the order of the rows.
var programs = rounds.Programs{
	{ours, "ringtrain"},
	{"ray", "Ray"},
}

// write writes a row for each program and training. It returns an error if Ray is too fast.
func write(w io.Writer, runs []run, least float64, notes []string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### Parameter servers, %d workers, batch 128 per worker\n\nMedian [minimum-maximum] of the rounds; samples/s of all workers. Above a ratio of 1, ringtrain is faster.\n\n", runs[0].Workers)
	rounds.Head(&b, "training", "updates", "program", "samples/s", "ringtrain's / its", "test accuracy", "with")
	var slow []error
	var base []float64
	for len(runs) > 0 {
		first := runs[0]
		n := slices.IndexFunc(runs, func(r run) bool { return r.training != first.training || r.program != first.program })
		if n < 0 {
			n = len(runs)
		}
		var rates, accuracies []float64
		for _, r := range runs[:n] {
			rates, accuracies = append(rates, r.Rate), append(accuracies, *r.Accuracy)
		}
		ratio := ""
		if first.program == ours {
			base = rates
		} else if len(base) == len(rates) {
			x := rounds.Ratio(base, rates)
			ratio = fmt.Sprintf("%.2f", x)
			if x < least {
				slow = append(slow, fmt.Errorf("%s: ringtrain's speed is %.2f times that of %s, less than %v", first.training, x, programs.Title(first.program), least))
			}
		}
		rounds.Row(&b, first.training, strconv.Itoa(first.Steps), programs.Title(first.program), rounds.Spread(rates, whole), ratio, rounds.Spread(accuracies, thousandths), first.Plan+first.About)
		runs = runs[n:]
	}
	for _, note := range notes {
		fmt.Fprintf(&b, "\n%s\n", note)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	return errors.Join(slow...)
}

func whole(x float64) string       { return fmt.Sprintf("%.0f", x) }
func thousandths(x float64) string { return fmt.Sprintf("%.3f", x) }
