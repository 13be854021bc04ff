package data

import (
	"fmt"
	"slices"
)

// A Tally counts, for each column of texts, the values that were in no training row. To a
// model, they are missing.
type Tally struct {
	columns         []Column
	values, unknown []int
}

// NewTally returns a Tally of rows that become numbers as columns say.
func NewTally(columns []Column) *Tally {
	return &Tally{columns, make([]int, len(columns)), make([]int, len(columns))}
}

// Add counts rows of a table. Columns that the table lacks have no values.
func (y *Tally) Add(t *Table, rows []int32) {
	for i := range y.columns {
		c := &y.columns[i]
		at := -1
		if len(c.Categories) > 0 {
			at = t.Index(c.Name)
		}
		if at < 0 {
			continue
		}
		for _, r := range rows {
			cell := t.Cells[r][at]
			if absent(cell) {
				continue
			}
			y.values[i]++
			if _, known := slices.BinarySearch(c.Categories, cell); !known {
				y.unknown[i]++
			}
		}
	}
}

// Warnings returns a line for each column with such values.
func (y *Tally) Warnings() []string {
	var all []string
	for i := range y.columns {
		if y.unknown[i] > 0 {
			all = append(all, fmt.Sprintf("column %q: %d of %d values did not occur in the training rows", y.columns[i].Name, y.unknown[i], y.values[i]))
		}
	}
	return all
}
