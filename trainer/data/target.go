package data

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Classes returns the different texts of a column in all rows, which are the classes of a
// classification: numbers in ascending order, other texts sorted. It returns an error if
// there are too few or too many, or if one is missing.
func (t *Table) Classes(column int) ([]string, error) {
	rows := Range(nil, 0, t.Rows())
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s has no rows", t.Path)
	}
	for _, r := range rows {
		if absent(t.Cells[r][column]) {
			return nil, t.noTarget(int(r), column)
		}
	}
	all := t.Texts(column, rows)
	switch {
	case len(all) < 2:
		return nil, t.Errorf(0, column, "all rows have the class %.60q; a classification needs at least two", all[0])
	case len(all) > mostCategories:
		return nil, t.Errorf(0, column, "the column has %d different values, more than the limit of %d classes", len(all), mostCategories)
	}
	if _, numeric, err := t.numbers(column, rows); err != nil {
		return nil, err // NaN has no order
	} else if numeric {
		slices.SortStableFunc(all, func(a, b string) int {
			x, _ := number(a)
			y, _ := number(b)
			return cmp.Compare(x, y)
		})
	}
	return all, nil
}

// noTarget returns the error for a row whose value to predict is missing.
func (t *Table) noTarget(row, column int) error {
	return t.Errorf(row, column, "the value to predict is missing; fill it in, or remove the row")
}

// Moments returns the mean and the deviation of a column to predict in these rows, which
// are to train on. It returns an error if a value is missing or no number, or if all are
// equal or differ too little.
func (t *Table) Moments(column int, rows []int32) (mean, deviation float64, err error) {
	all := make([]float64, len(rows))
	for i, r := range rows {
		if all[i], err = t.Value(int(r), column); err != nil {
			return 0, 0, err
		}
	}
	mean, deviation, equal, err := t.moments(column, rows, all)
	switch {
	case err != nil:
		return 0, 0, err
	case equal:
		return 0, 0, t.Errorf(int(rows[0]), column, "all training rows have the value %s, so there is nothing to predict", t.Cells[rows[0]][column])
	case deviation == 0:
		return 0, 0, t.Errorf(int(rows[0]), column, "the numbers of the column differ too little to compute their deviation; scale them up")
	}
	return mean, deviation, nil
}

// Value returns the number to predict of a row.
func (t *Table) Value(row, column int) (float64, error) {
	cell := t.Cells[row][column]
	if absent(cell) {
		return 0, t.noTarget(row, column)
	}
	v, ok := number(cell)
	if !ok {
		return 0, t.Errorf(row, column, "%.60q is not a number, which a regression predicts", cell)
	}
	return v, t.finite(v, row, column)
}

// CheckColumns returns an error for columns that Fit cannot have returned, for reading
// them from a file.
func CheckColumns(columns []Column) error {
	if len(columns) == 0 || len(columns) > mostColumns {
		return fmt.Errorf("data: there are %d columns", len(columns))
	}
	seen := map[string]bool{}
	for _, c := range columns {
		sorted := slices.IsSorted(c.Categories) && len(slices.Compact(slices.Clone(c.Categories))) == len(c.Categories)
		if seen[c.Name] || c.Name == "" || !sorted || len(c.Categories) > mostCategories {
			return errors.New("data: names or categories of columns are empty, not sorted, or not distinct")
		}
		if len(c.Categories) == 0 && (!(c.Deviation > 0) || math.IsInf(c.Deviation, 0)) {
			return fmt.Errorf("data: the deviation of column %q is %v", c.Name, c.Deviation)
		}
		seen[c.Name] = true
	}
	return nil
}
