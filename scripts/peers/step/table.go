package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/scripts/peers/rounds"
)

// table writes the table of a directory, and then fails if ratios are lower than
// required.
func table(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("step table", flag.ContinueOnError)
	flags.SetOutput(stderr)
	csvFile := flags.String("csv", "", "`file` for all records, with program and round")
	least := flags.String("require", "", "minimum ratios: a comma-separated `list` of [MODEL:][PEER[/OURS]=]RATIO")
	notes := rounds.Notes(flags)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil || flags.NArg() != 1 {
		return errUsage
	}
	demands, err := parseDemands(*least)
	if err != nil {
		return err
	}
	runs, err := readAll(os.DirFS(flags.Arg(0)))
	if err != nil {
		return err
	}
	if *csvFile != "" {
		if err := writeCSV(*csvFile, runs); err != nil {
			return err
		}
	}
	results, err := summarize(runs)
	if err != nil {
		return err
	}
	var text strings.Builder
	write(&text, results)
	for _, note := range *notes {
		fmt.Fprintf(&text, "\n%s\n", note)
	}
	if _, err := io.WriteString(stdout, text.String()); err != nil {
		return err
	}
	var slow []error
	for _, d := range demands {
		slow = append(slow, d.unmet(results))
	}
	return errors.Join(slow...)
}

// write writes a row for each program of each model, with a column of ratios for each
// of ringtrain's programs.
func write(b *strings.Builder, results []result) {
	fmt.Fprintf(b, "\n### One training step, batch %d, one core\n\nMicroseconds: median [minimum-maximum] of %d rounds, each the median of at least %d steps. Above a ratio of 1, ringtrain is faster.\n\n",
		rows, len(results[0].rows[0].times), results[0].steps())
	bases := bases(results)
	head := []string{"model", "program", "us per step"}
	for _, base := range bases {
		head = append(head, "/ "+programs.Title(base))
	}
	rounds.Head(b, append(head, "loss, first", "last")...)
	for _, r := range results {
		for _, x := range r.rows {
			cells := []string{r.model, programs.Title(x.program), rounds.Spread(x.times, micros)}
			for _, base := range bases {
				ratio, ok := r.ratio(x.program, base)
				if !ok || isOurs(x.program) && base != ours {
					cells = append(cells, "")
					continue
				}
				cells = append(cells, fmt.Sprintf("%.2f", ratio))
			}
			rounds.Row(b, append(cells, fmt.Sprintf("%.2f", bench.Median(x.first)), fmt.Sprintf("%.2f", bench.Median(x.last)))...)
		}
	}
	b.WriteString("\nThe libraries that multiplied matrices:\n\n")
	for _, about := range abouts(results) {
		fmt.Fprintf(b, "- %s\n", about)
	}
}

func micros(x float64) string { return fmt.Sprintf("%.0f", x) }

// bases returns ringtrain's programs in any result.
func bases(results []result) []string {
	var all []string
	for _, p := range programs {
		for _, r := range results {
			if isOurs(p.Name) && r.find(p.Name) >= 0 && !slices.Contains(all, p.Name) {
				all = append(all, p.Name)
			}
		}
	}
	return all
}

// abouts returns what the programs report about themselves, without duplicates.
func abouts(results []result) []string {
	var all []string
	for _, r := range results {
		for _, x := range r.rows {
			if about := programs.Title(x.program) + ": " + x.about; !slices.Contains(all, about) {
				all = append(all, about)
			}
		}
	}
	return all
}

// writeCSV writes every record of every round.
func writeCSV(name string, runs []measurement) error {
	lines := [][]string{{"model", "round", "program", "median_us", "least_us", "steps", "first_loss", "last_loss", "about"}}
	for _, r := range runs {
		lines = append(lines, []string{
			r.Model, strconv.Itoa(r.round), r.program, rounds.Exact(r.Median), rounds.Exact(r.Least), strconv.Itoa(r.Steps),
			rounds.Exact(r.First), rounds.Exact(r.Last), r.About,
		})
	}
	return rounds.WriteCSV(name, lines)
}
