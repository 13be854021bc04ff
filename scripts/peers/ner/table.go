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

// ours is the program with which all others are compared.
const ours = "ringtrain"

// programs have titles, in the order of the rows. Others come last.
var programs = rounds.Programs{
	{ours, "ringtrain"},
	{"spacy", "spaCy"},
}

// write writes a row for each program. It returns an error if another one is too fast.
func write(w io.Writer, runs []run, least float64, notes []string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### Named entities, %d steps\n\nMedian [minimum-maximum] of the rounds; words/s after the first %d steps. Above a ratio of 1, ringtrain is faster.\n\n", runs[0].steps, warmUp)
	rounds.Head(&b, "program", "words/s", "ringtrain's / its", "words per step", "ents_f", "with")
	var slow []error
	var base []float64
	for len(runs) > 0 {
		n := slices.IndexFunc(runs, func(r run) bool { return r.program != runs[0].program })
		if n < 0 {
			n = len(runs)
		}
		var rates, sizes, scores []float64
		for _, r := range runs[:n] {
			rates, sizes, scores = append(rates, r.rate()), append(sizes, float64(r.words)/float64(r.steps-warmUp)), append(scores, r.f)
		}
		first, title, ratio := runs[0], programs.Title(runs[0].program), ""
		if first.program == ours {
			base = rates
		} else if len(base) == len(rates) {
			x := rounds.Ratio(base, rates)
			ratio = fmt.Sprintf("%.2f", x)
			if x < least {
				slow = append(slow, fmt.Errorf("ringtrain's speed is %.2f times that of %s, less than %v", x, title, least))
			}
		}
		rounds.Row(&b, title, rounds.Spread(rates, whole), ratio, rounds.Spread(sizes, whole), rounds.Spread(scores, thousandths), first.with)
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

// writeCSV writes every run.
func writeCSV(name string, runs []run) error {
	lines := [][]string{{"program", "round", "steps", "words", "seconds", "ents_f", "with"}}
	for _, r := range runs {
		lines = append(lines, []string{
			r.program, strconv.Itoa(r.round), strconv.Itoa(r.steps), strconv.Itoa(r.words), rounds.Exact(r.seconds), rounds.Exact(r.f), r.with,
		})
	}
	return rounds.WriteCSV(name, lines)
}
