// Package rounds reads and prints the files of the scripts that compare programs:
// scripts/rounds.sh leaves one for each program, case and round. Every program is
// measured once in a round, and ratios are taken within rounds.
package rounds

import (
	"encoding/csv"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/bench"
)

// Programs lists programs with titles for people, in the order of the table.
type Programs []struct{ Name, Title string }

// Index returns the position of a program in the table. Programs without a title come
// last.
func (p Programs) Index(name string) int {
	for i, known := range p {
		if known.Name == name {
			return i
		}
	}
	return len(p)
}

// Title returns the title of a program, or its name if it has none.
func (p Programs) Title(name string) string {
	if i := p.Index(name); i < len(p) {
		return p[i].Title
	}
	return name
}

// Notes adds the flag -note, which may be repeated. The result has its texts after the
// flags are parsed.
func Notes(flags *flag.FlagSet) *[]string {
	var notes []string
	flags.Func("note", "`text` below the tables; may be repeated", func(text string) error {
		notes = append(notes, text)
		return nil
	})
	return &notes
}

// Read calls parse for every file of a directory, in the order of names, with the groups
// that the pattern matches in its name. Its errors, and those of parse, name the file.
// form describes the file names in errors.
func Read(dir fs.FS, pattern *regexp.Regexp, form string, parse func(groups []string, text []byte) error) error {
	files, err := fs.ReadDir(dir, ".")
	if err != nil {
		return err
	}
	for _, f := range files {
		groups := pattern.FindStringSubmatch(f.Name())
		if groups == nil {
			return fmt.Errorf("%s: its name must have the form %s", f.Name(), form)
		}
		text, err := fs.ReadFile(dir, f.Name())
		if err != nil {
			return err
		}
		if err := parse(groups[1:], text); err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	return nil
}

// WriteCSV writes lines of comma-separated values to a file.
func WriteCSV(name string, lines [][]string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := csv.NewWriter(f).WriteAll(lines); err != nil {
		_ = f.Close() // the first error counts
		return err
	}
	return f.Close()
}

// Exact formats a number for a CSV file.
func Exact(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// Ratio returns the median over the rounds of a time divided by another of the same
// round.
func Ratio(times, by []float64) float64 {
	ratios := make([]float64, len(times))
	for i, t := range times {
		ratios[i] = t / by[i]
	}
	return bench.Median(ratios)
}

// Spread formats the median of the rounds with, in brackets, minimum and maximum.
func Spread(x []float64, format func(float64) string) string {
	return fmt.Sprintf("%s [%s-%s]", format(bench.Median(x)), format(slices.Min(x)), format(slices.Max(x)))
}

// Head writes the first two lines of a Markdown table.
func Head(b *strings.Builder, cells ...string) {
	Row(b, cells...)
	b.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
}

// Row writes a line of a Markdown table.
func Row(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}
