package bench

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A grid is a table without a format.
type grid struct {
	head []string
	rows [][]string
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

// widths returns the widths of the columns in characters.
func (g *grid) widths() []int {
	widths := make([]int, len(g.head))
	for _, row := range append([][]string{g.head}, g.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// text writes aligned columns: the first to the left, the others, which have numbers,
// to the right.
func (g *grid) text(b *strings.Builder) {
	widths := g.widths()
	for _, row := range append([][]string{g.head}, g.rows...) {
		var line strings.Builder
		for i, cell := range row {
			fill := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString(cell + fill)
			} else {
				line.WriteString("  " + fill + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// markdown writes the grid as a Markdown table.
func (g *grid) markdown(b *strings.Builder) {
	widths := g.widths()
	line := func(row []string) {
		for i, cell := range row {
			fill := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				fmt.Fprintf(b, "| %s%s ", cell, fill)
			} else {
				fmt.Fprintf(b, "| %s%s ", fill, cell)
			}
		}
		b.WriteString("|\n")
	}
	line(g.head)
	for i, width := range widths {
		if i == 0 {
			fmt.Fprintf(b, "| %s ", strings.Repeat("-", max(width, 1)))
		} else {
			fmt.Fprintf(b, "| %s: ", strings.Repeat("-", max(width-1, 1)))
		}
	}
	b.WriteString("|\n")
	for _, row := range g.rows {
		line(row)
	}
}
