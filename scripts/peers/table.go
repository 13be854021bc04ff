package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/bench"
)

// ours is the program that all others are compared with.
const ours = "ringtrain"

// programs are those that have a title, in the order of the columns. Others
// come last.
var programs = []struct{ name, title string }{
	{ours, "ringtrain"},
	{"ringtrain-tls", "ringtrain, TLS"},
	{"gloo", "Gloo"},
	{"openmpi", "Open MPI"},
}

func place(program string) int {
	for i, p := range programs {
		if p.name == program {
			return i
		}
	}
	return len(programs)
}

func title(program string) string {
	if i := place(program); i < len(programs) {
		return programs[i].title
	}
	return program
}

// A result is all rounds of one number of ranks.
type result struct {
	ranks   int
	rounds  []int // their numbers
	sizes   []int
	columns []column
}

// A column is one program.
type column struct {
	program, transport string
	rounds             []int
	cells              []cell // for each size
}

// A cell is one program and size.
type cell struct {
	times  []float64 // for each round, microseconds
	means  []float64 // as many as were said
	p99s   []float64
	toOurs float64 // the median over the rounds of this time by ringtrain's
}

// summarize makes a result of every number of ranks. All programs must have
// measured the same sizes in the same rounds.
func summarize(all []measurement) ([]result, error) {
	var results []result
	for len(all) > 0 {
		n := slices.IndexFunc(all, func(m measurement) bool { return m.ranks != all[0].ranks })
		if n < 0 {
			n = len(all)
		}
		r, err := summarizeRanks(all[:n])
		if err != nil {
			return nil, err
		}
		results, all = append(results, r), all[n:]
	}
	if results == nil {
		return nil, fmt.Errorf("there are no files")
	}
	return results, nil
}

func summarizeRanks(all []measurement) (result, error) {
	r := result{ranks: all[0].ranks}
	for _, x := range all[0].records {
		r.sizes = append(r.sizes, x.Size)
	}
	for _, m := range all {
		if err := r.add(m); err != nil {
			return r, fmt.Errorf("%d ranks, round %d, %s: %w", m.ranks, m.round, m.program, err)
		}
	}
	if r.columns[0].program != ours {
		return r, fmt.Errorf("%d ranks: %s is missing", r.ranks, ours)
	}
	r.rounds = r.columns[0].rounds
	for _, c := range r.columns {
		if !slices.Equal(c.rounds, r.rounds) {
			return r, fmt.Errorf("%d ranks: %s has the rounds %v, %s %v", r.ranks, ours, r.rounds, c.program, c.rounds)
		}
		for i := range c.cells {
			ratios := make([]float64, len(r.rounds))
			for round, time := range c.cells[i].times {
				ratios[round] = time / r.columns[0].cells[i].times[round]
			}
			c.cells[i].toOurs = bench.Median(ratios)
		}
	}
	return r, nil
}

// add takes one measurement in.
func (r *result) add(m measurement) error {
	i := slices.IndexFunc(r.columns, func(c column) bool { return c.program == m.program })
	if i < 0 {
		r.columns = append(r.columns, column{m.program, m.records[0].Transport, nil, make([]cell, len(r.sizes))})
		slices.SortStableFunc(r.columns, func(a, b column) int { return place(a.program) - place(b.program) })
		i = slices.IndexFunc(r.columns, func(c column) bool { return c.program == m.program })
	}
	sizes := make([]int, len(m.records))
	for j, x := range m.records {
		sizes[j] = x.Size
	}
	if !slices.Equal(sizes, r.sizes) {
		return fmt.Errorf("it has the sizes %v, others %v", sizes, r.sizes)
	}
	r.columns[i].rounds = append(r.columns[i].rounds, m.round)
	for j, x := range m.records {
		c := &r.columns[i].cells[j]
		c.times, c.p99s = append(c.times, x.Time), append(c.p99s, x.P99)
		if x.Mean != nil {
			c.means = append(c.means, *x.Mean)
		}
	}
	return nil
}

// write writes the tables.
func (r result) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n### %d ranks\n\nMicroseconds, median [least-most] of the rounds, which are %d; a ratio above 1: ringtrain is faster.\n\n", r.ranks, len(r.rounds))
	head := []string{"size"}
	for _, c := range r.columns {
		head = append(head, c.title())
	}
	for _, c := range r.peers() {
		head = append(head, title(c.program)+" / ringtrain")
	}
	row(b, head)
	separator(b, len(head))
	for i, size := range r.sizes {
		cells := []string{formatSize(size)}
		for _, c := range r.columns {
			x := c.cells[i].times
			cells = append(cells, fmt.Sprintf("%s [%s-%s]", number(bench.Median(x)), number(slices.Min(x)), number(slices.Max(x))))
		}
		for _, c := range r.peers() {
			cells = append(cells, ratio(c.cells[i].toOurs))
		}
		row(b, cells)
	}
	r.writeSpread(b)
}

// writeSpread writes the table of means and tails.
func (r result) writeSpread(b *strings.Builder) {
	fmt.Fprintf(b, "\nThe same calls: the mean of a round (- where a program does not say) and the time that 99 of 100 calls kept, medians of the rounds.\n\n")
	head := []string{"size"}
	for _, c := range r.columns {
		head = append(head, c.title()+": mean", "p99")
	}
	row(b, head)
	separator(b, len(head))
	for i, size := range r.sizes {
		cells := []string{formatSize(size)}
		for _, c := range r.columns {
			mean := "-"
			if len(c.cells[i].means) == len(r.rounds) {
				mean = number(bench.Median(c.cells[i].means))
			}
			cells = append(cells, mean, number(bench.Median(c.cells[i].p99s)))
		}
		row(b, cells)
	}
}

func (c column) title() string { return title(c.program) + ", " + c.transport }

// peers are the columns of other libraries.
func (r result) peers() []column {
	return slices.DeleteFunc(slices.Clone(r.columns), func(c column) bool {
		return strings.HasPrefix(c.program, ours)
	})
}

// below is an error for each ratio that is less than it must be.
func (r result) below(least float64) []error {
	var slow []error
	for _, c := range r.peers() {
		for i, x := range c.cells {
			if x.toOurs < least {
				slow = append(slow, fmt.Errorf("%d ranks, %s: %s / ringtrain is %s, not %v",
					r.ranks, formatSize(r.sizes[i]), title(c.program), ratio(x.toOurs), least))
			}
		}
	}
	return slow
}

func row(b *strings.Builder, cells []string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func separator(b *strings.Builder, columns int) {
	b.WriteString(strings.Repeat("|---", columns) + "|\n")
}

// formatSize is a size as people write it: 64 KB are 65536 bytes.
func formatSize(bytes int) string {
	text := bench.FormatSize(bytes)
	if i := strings.IndexAny(text, "KMG"); i >= 0 {
		return text[:i] + " " + text[i:] + "B"
	}
	return text + " B"
}

// number is microseconds in three digits, without exponents.
func number(x float64) string {
	switch {
	case x < 10:
		return fmt.Sprintf("%.2f", x)
	case x < 100:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// ratio has two digits at least.
func ratio(x float64) string {
	if x < .1 {
		return fmt.Sprintf("%.2g", x)
	}
	return fmt.Sprintf("%.2f", x)
}
