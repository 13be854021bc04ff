package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/scripts/peers/rounds"
)

const (
	ours = "ringtrain"
	peer = "pytorch"
)

// programs have titles, in the order of the rows.
var programs = rounds.Programs{
	{ours, "ringtrain"},
	{"ringtrain-openblas", "ringtrain, OpenBLAS"},
	{peer, "PyTorch"},
}

// The largest differences of losses, as fractions. All programs begin with the same weights
// and rows, so the first losses differ by rounding only. Rounding grows from step to step:
// in 1000 steps, other matrix products alone changed the loss of the held-out rows by 2.3 %.
const (
	firstTolerance = 1e-5
	lastTolerance  = .02
	heldTolerance  = .05
)

// table writes the tables of a directory, and then fails if a ratio is lower than required.
func table(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("transformer table", flag.ContinueOnError)
	flags.SetOutput(stderr)
	csvFile := flags.String("csv", "", "`file` for all figures, with program and round")
	least := flags.Float64("require", 0, "minimum `ratio` of PyTorch's time to ringtrain's")
	notes := rounds.Notes(flags)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil || flags.NArg() != 1 {
		return errUsage
	}
	all, err := readAll(os.DirFS(flags.Arg(0)))
	if err != nil {
		return err
	}
	if *csvFile != "" {
		if err := writeCSV(*csvFile, all); err != nil {
			return err
		}
	}
	losses, times := split(all)
	if err := same(losses); err != nil {
		return err
	}
	var text strings.Builder
	writeLosses(&text, losses)
	ratio, err := writeTimes(&text, times)
	if err != nil {
		return err
	}
	for _, note := range *notes {
		fmt.Fprintf(&text, "\n%s\n", note)
	}
	if _, err := io.WriteString(stdout, text.String()); err != nil {
		return err
	}
	if ratio < *least {
		return fmt.Errorf("PyTorch's time is %.2f of ringtrain's, but must be at least %.2f", ratio, *least)
	}
	return nil
}

// A row has the runs of one program.
type row struct {
	program string
	rounds  []int
	times   []float64
	training
}

// split returns the rows of both cases, in the order of the tables.
func split(all []training) (losses, times []row) {
	for _, t := range all {
		rows := &losses
		if t.kase == caseTime {
			rows = &times
		}
		i := slices.IndexFunc(*rows, func(r row) bool { return r.program == t.program })
		if i < 0 {
			i = len(*rows)
			*rows = append(*rows, row{program: t.program, training: t})
		}
		r := &(*rows)[i]
		r.rounds, r.times = append(r.rounds, t.round), append(r.times, t.time())
	}
	for _, rows := range [][]row{losses, times} {
		slices.SortFunc(rows, func(a, b row) int { return programs.Index(a.program) - programs.Index(b.program) })
	}
	return losses, times
}

// find returns the row of a program.
func find(rows []row, program string) (row, bool) {
	i := slices.IndexFunc(rows, func(r row) bool { return r.program == program })
	if i < 0 {
		return row{}, false
	}
	return rows[i], true
}

// same returns an error unless PyTorch trains what ringtrain does.
func same(losses []row) error {
	base, ok := find(losses, ours)
	if !ok {
		return fmt.Errorf("the losses of %s are missing", ours)
	}
	for _, r := range losses {
		for _, of := range []struct {
			what    string
			a, b    float64
			allowed float64
		}{
			{"of the first step", r.losses[0], base.losses[0], firstTolerance},
			{"at the end", r.last(), base.last(), lastTolerance},
			{"of the held-out rows", r.held, base.held, heldTolerance},
		} {
			if d := difference(of.a, of.b); !(math.Abs(d) <= of.allowed) {
				return fmt.Errorf("the loss %s of %s is %.6f bits and that of %s %.6f: they differ by more than %v%%", of.what, r.program, of.a, ours, of.b, 100*of.allowed)
			}
		}
		if len(r.losses) != len(base.losses) {
			return fmt.Errorf("%s took %d steps, and %s %d", r.program, len(r.losses), ours, len(base.losses))
		}
	}
	return nil
}

// difference returns the difference of a from b as a fraction of b.
func difference(a, b float64) float64 { return (a - b) / b }

// writeLosses writes the losses, and how ringtrain's differ from PyTorch's.
func writeLosses(b *strings.Builder, losses []row) {
	steps := len(losses[0].losses)
	fmt.Fprintf(b, "\n### Loss after %d steps\n\nBits per character. Training: the mean of the last %d steps. Held out: the end of the text.\n\n", steps, min(lastSteps, steps))
	rounds.Head(b, "program", "first step", "training", "from PyTorch", "held out", "from PyTorch")
	base, compared := find(losses, peer)
	for _, r := range losses {
		cells := []string{programs.Title(r.program), bits(r.losses[0]), bits(r.last()), "", bits(r.held), ""}
		if compared && r.program != peer {
			cells[3], cells[5] = percent(difference(r.last(), base.last())), percent(difference(r.held, base.held))
		}
		rounds.Row(b, cells...)
	}
}

// writeTimes writes the times of a step and returns the ratio of PyTorch's to ringtrain's.
func writeTimes(b *strings.Builder, times []row) (ratio float64, err error) {
	base, ok := find(times, ours)
	if !ok {
		return 0, fmt.Errorf("the times of %s are missing", ours)
	}
	fmt.Fprintf(b, "\n### One training step, one core\n\nMilliseconds: median [minimum-maximum] of %d rounds, each the median of %d steps. Above a ratio of 1, PyTorch is slower.\n\n", len(base.times), len(base.took))
	rounds.Head(b, "program", "ms per step", "PyTorch / program")
	other, compared := find(times, peer)
	ratio = math.Inf(1)
	for _, r := range times {
		if !slices.Equal(r.rounds, base.rounds) {
			return 0, fmt.Errorf("%s has the rounds %v, %s %v", ours, base.rounds, r.program, r.rounds)
		}
		cells := []string{programs.Title(r.program), rounds.Spread(r.times, millis), ""}
		if compared && r.program != peer {
			by := rounds.Ratio(other.times, r.times)
			cells[2] = fmt.Sprintf("%.2f", by)
			if r.program == ours {
				ratio = by
			}
		}
		rounds.Row(b, cells...)
	}
	return ratio, nil
}

func bits(x float64) string    { return fmt.Sprintf("%.4f", x) }
func millis(x float64) string  { return fmt.Sprintf("%.1f", x) }
func percent(x float64) string { return fmt.Sprintf("%+.2f %%", 100*x) }

// writeCSV writes the figures of every run.
func writeCSV(name string, all []training) error {
	lines := [][]string{{"case", "round", "program", "steps", "first_bits", "last_bits", "held_out_bits", "median_ms"}}
	for _, t := range all {
		lines = append(lines, []string{
			t.kase, strconv.Itoa(t.round), t.program, strconv.Itoa(len(t.losses)),
			rounds.Exact(t.losses[0]), rounds.Exact(t.last()), rounds.Exact(t.held), rounds.Exact(t.time()),
		})
	}
	return rounds.WriteCSV(name, lines)
}
