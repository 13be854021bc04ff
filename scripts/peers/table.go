package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/scripts/peers/rounds"
)

// write writes the tables and the figures below them.
func (r *result) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n### %d ranks\n\nMicroseconds per call: median [minimum-maximum] of %d rounds. Above a ratio of 1, ringtrain is faster.\n\n", r.ranks, len(r.rounds))
	r.writeRatios(b, timesOf)
	b.WriteString("\nThe same calls: the mean of a round, and the time within which 99 of 100 calls finished. Medians of the rounds.\n\n")
	r.writeSpread(b)
	b.WriteString("\nA call plus one check of its result.\n\n")
	r.writeRatios(b, readsOf)
	r.writeGarbage(b)
	r.writeBare(b)
	r.writeMemory(b)
}

// writeRatios writes a table of one kind of figure, with ratios.
func (r *result) writeRatios(b *strings.Builder, figures func(cell) []float64) {
	ratios := r.ratios()
	head := []string{"size"}
	for _, c := range r.columns {
		head = append(head, c.title())
	}
	for _, x := range ratios {
		head = append(head, x.title)
	}
	rounds.Head(b, head...)
	for i, size := range r.sizes {
		cells := []string{formatSize(size)}
		for _, c := range r.columns {
			cells = append(cells, rounds.Spread(figures(c.cells[i]), number))
		}
		for _, x := range ratios {
			cells = append(cells, formatRatio(x.of(i, figures)))
		}
		rounds.Row(b, cells...)
	}
}

// writeSpread writes the table of means and tails.
func (r *result) writeSpread(b *strings.Builder) {
	head := []string{"size"}
	for _, c := range r.columns {
		head = append(head, c.title()+": mean", "p99")
	}
	rounds.Head(b, head...)
	for i, size := range r.sizes {
		cells := []string{formatSize(size)}
		for _, c := range r.columns {
			cells = append(cells, number(bench.Median(c.cells[i].means)), number(bench.Median(c.cells[i].p99s)))
		}
		rounds.Row(b, cells...)
	}
}

// writeGarbage writes what garbage collection does to the slowest calls.
func (r *result) writeGarbage(b *strings.Builder) {
	if len(r.garbage) == 0 {
		return
	}
	var times, p99s, ratios []float64
	for _, x := range r.garbage {
		times, p99s, ratios = append(times, x.Time), append(p99s, x.P99), append(ratios, x.P99/x.Time)
	}
	fmt.Fprintf(b, "\nringtrain, %s, while a goroutine of each rank makes garbage: median %s, p99 %s, p99 / median %s.\n",
		formatSize(r.garbage[0].Size), rounds.Spread(times, number), rounds.Spread(p99s, number), rounds.Spread(ratios, formatRatio))
}

// writeBare writes the times of the bare exchange.
func (r *result) writeBare(b *strings.Builder) {
	if len(r.bare.rounds) == 0 {
		return
	}
	b.WriteString("\nBare: two processes that only copy their vector to shared memory, or send it, wait for the other's, and add it.\n\n")
	ratios := r.bareRatios()
	head := []string{"size", "bare"}
	for _, x := range ratios {
		head = append(head, x.title)
	}
	rounds.Head(b, head...)
	for i := range r.bare.cells {
		cells := []string{formatSize(r.sizes[i]), rounds.Spread(r.bare.cells[i].times, number)}
		for _, x := range ratios {
			cells = append(cells, formatRatio(x.of(i, timesOf)))
		}
		rounds.Row(b, cells...)
	}
}

// writeMemory writes the speed of memory and, for boundSize, how near the programs come
// to the bound that it sets.
func (r *result) writeMemory(b *strings.Builder) {
	if len(r.memory) == 0 {
		return
	}
	var copies, adds []float64
	for _, m := range r.memory {
		copies, adds = append(copies, m.Copy), append(adds, m.Add)
	}
	m := r.memory[0]
	fmt.Fprintf(b, "\nMemory, vectors of %s on %s: %s GB/s copying, %s adding float32.", formatSize(m.Bytes), cores(m.Threads), rounds.Spread(copies, number), rounds.Spread(adds, number))
	if i := slices.Index(r.sizes, boundSize); i >= 0 {
		r.writeBound(b, i)
	}
	b.WriteString("\n")
}

func cores(n int) string {
	if n == 1 {
		return "1 core"
	}
	return fmt.Sprintf("%d cores", n)
}

// writeBound writes the bound of size i.
func (r *result) writeBound(b *strings.Builder, i int) {
	bounds := make([]float64, len(r.memory))
	for round, m := range r.memory {
		bounds[round] = m.AllReduceBound(r.ranks, r.sizes[i])
	}
	fmt.Fprintf(b, " An allreduce of %s moves at least %s, which takes %s us at the faster speed. The programs reach this share of the bound:",
		formatSize(r.sizes[i]), formatSize(2*r.ranks*r.sizes[i]), rounds.Spread(bounds, number))
	for j, c := range r.columns {
		shares := make([]float64, len(bounds))
		for round, time := range c.cells[i].times {
			shares[round] = 100 * bounds[round] / time
		}
		comma := ";"
		if j == 0 {
			comma = ""
		}
		fmt.Fprintf(b, "%s %s %.0f %%", comma, c.title(), bench.Median(shares))
	}
	b.WriteString(".")
}

func (c column) title() string { return programs.Title(c.program) + ", " + c.transport }

// formatSize formats a size for people: 64 KB are 65536 bytes.
func formatSize(bytes int) string {
	text := bench.FormatSize(bytes)
	if i := strings.IndexAny(text, "KMG"); i >= 0 {
		return text[:i] + " " + text[i:] + "B"
	}
	return text + " B"
}

// number formats microseconds, or GB/s, in three digits, without exponents.
func number(x float64) string {
	switch {
	case x < 10:
		return fmt.Sprintf("%.2f", x)
	case x < 100:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// formatRatio formats a ratio in at least two digits.
func formatRatio(x float64) string {
	if x < .1 {
		return fmt.Sprintf("%.2g", x)
	}
	return fmt.Sprintf("%.2f", x)
}
