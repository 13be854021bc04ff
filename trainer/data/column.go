package data

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Column says how the cells of a column of a Table become numbers. A column of text is
// one number for each category: 1 for the category of the cell and 0 for the others. A
// missing or unknown category is all zeros. A column of numbers is standardised: the mean
// of the training rows is subtracted, and the result divided by their deviation. A missing
// number becomes the mean, and thus 0.
type Column struct {
	Name       string   `json:"name"`
	Categories []string `json:"categories,omitempty"` // sorted; none in a column of numbers
	Mean       float64  `json:"mean,omitempty"`
	Deviation  float64  `json:"deviation,omitempty"` // of the population; 1 if all values are equal
	// Indicator means that a second number is 1 where the first is missing, because some
	// were missing in training.
	Indicator bool `json:"indicator,omitempty"`
}

// mostCategories bounds the categories of a column. More are a mistake: an identifier, or
// numbers with a decimal comma.
const mostCategories = 1000

// Width returns the number of numbers that a cell becomes.
func (c *Column) Width() int {
	switch {
	case len(c.Categories) > 0:
		return len(c.Categories)
	case c.Indicator:
		return 2
	}
	return 1
}

// Fit returns how a column becomes numbers, from these rows, which are to train on. It is
// a column of numbers if every value in them that is not missing is a number. Sums are
// taken in float64 in the order of rows, so all machines get the same bits.
func (t *Table) Fit(column int, rows []int32) (Column, error) {
	c := Column{Name: t.Columns[column]}
	all, numeric, err := t.numbers(column, rows)
	switch {
	case err != nil:
		return c, err
	case !numeric:
		c.Categories = t.Texts(column, rows)
		if n := len(c.Categories); n > mostCategories {
			return c, t.Errorf(int(rows[0]), column, "the column has %d different texts, more than %d; remove it, or make its values numbers with a decimal point", n, mostCategories)
		}
		return c, nil
	}
	c.Indicator = len(all) < len(rows)
	if len(all) > 0 {
		if c.Mean, c.Deviation, _, err = t.moments(column, rows, all); err != nil {
			return c, err
		}
	}
	if c.Deviation == 0 {
		c.Deviation = 1
	}
	return c, nil
}

// mostlyNumbers is the part of the cells that are numbers in a column that was probably meant
// to be one of numbers.
const mostlyNumbers = .9

// Doubt returns a warning if a column with categories was probably meant to be one of
// numbers, or "". In a column of texts it reads only as many rows as it takes to tell.
func (t *Table) Doubt(column int, rows []int32) string {
	present, numbers, commas, dressed, odd := 0, 0, 0, 0, -1
	others := (1 - mostlyNumbers) * float64(len(rows)) // texts beyond these settle it
	for _, r := range rows {
		cell := t.Cells[r][column]
		if absent(cell) {
			continue
		}
		present++
		if _, ok := number(cell); ok {
			numbers++
			continue
		}
		if odd < 0 {
			odd = int(r)
		}
		if _, comma := number(strings.Replace(cell, ",", ".", 1)); comma {
			commas++
		} else if _, other := number(undressed.Replace(cell)); other {
			dressed++
		} else if float64(present-numbers-commas-dressed) > others {
			return ""
		}
	}
	switch {
	case odd < 0 || float64(numbers+commas+dressed) < mostlyNumbers*float64(present):
		return ""
	case dressed > numbers+commas:
		return t.Errorf(odd, column, "%.60q is a number with other characters, so every text in the column is a category; write plain numbers such as 1234.5", t.Cells[odd][column]).Error()
	case commas > numbers:
		return t.Errorf(odd, column, "%.60q has a comma, so every text in the column is a category; write numbers with a decimal point", t.Cells[odd][column]).Error()
	}
	return t.Errorf(odd, column, "%.60q is not a number, as %d of %d values of the column are, so every text in it is a category; leave the cell empty if the value is missing",
		t.Cells[odd][column], numbers, present).Error()
}

// undressed removes what people write in and around numbers: signs of currencies, percent, and
// separators of thousands.
var undressed = strings.NewReplacer("$", "", "€", "", "£", "", "¥", "", "%", "", " ", "", "\u00a0", "", "\u202f", "", "'", "", "’", "", ",", "")

// enoughToTell is how many values a column must have for DoubtTexts to judge it.
const enoughToTell = 20

// DoubtTexts returns a warning if more than half of the values in a column of texts are distinct in
// these rows, or "". Such a column probably holds identifiers, dates or free text, and new rows will have
// other values. different is the number of distinct values; so says what each one becomes.
func (t *Table) DoubtTexts(column int, rows []int32, different int, so string) string {
	present := 0
	for _, r := range rows {
		if !absent(t.Cells[r][column]) {
			present++
		}
	}
	if present < enoughToTell || 2*different <= present {
		return ""
	}
	return fmt.Sprintf("%s: column %q has %d different texts in %d rows; %s", t.Path, t.Columns[column], different, present, so)
}

// numbers returns the numbers in a column in these rows, without missing values. numeric is
// false if a value is no number. It returns an error if all are numbers, but not all finite.
func (t *Table) numbers(column int, rows []int32) (all []float64, numeric bool, err error) {
	all = make([]float64, 0, len(rows))
	for _, r := range rows {
		cell := t.Cells[r][column]
		if absent(cell) {
			continue
		}
		v, ok := number(cell)
		if !ok {
			return nil, false, nil
		}
		if all = append(all, v); err == nil {
			err = t.finite(v, int(r), column)
		}
	}
	return all, true, err
}

// moments returns the mean and the deviation of all the numbers in a column, at least one,
// in these rows. equal means that all are the mean. The sums cannot tell: the mean of ten
// times 0.1 is less than 0.1, and squares of small differences are 0.
func (t *Table) moments(column int, rows []int32, all []float64) (mean, deviation float64, equal bool, err error) {
	if least, most := slices.Min(all), slices.Max(all); least == most {
		return least, 0, true, nil
	}
	sum, squares, n := 0., 0., float64(len(all))
	for _, v := range all {
		sum += v
	}
	mean = sum / n
	for _, v := range all {
		squares += mul(v-mean, v-mean)
	}
	if deviation = math.Sqrt(squares / n); math.IsInf(deviation, 0) || math.IsNaN(deviation) {
		return 0, 0, false, t.Errorf(int(rows[0]), column, "the numbers of the column are too large to compute their deviation; scale them down")
	}
	return mean, deviation, false, nil
}

// number returns the number in a cell.
func (t *Table) number(row, column int) (float64, error) {
	cell := t.Cells[row][column]
	v, ok := number(cell)
	if !ok {
		return 0, t.Errorf(row, column, "%.60q is not a number, as the column has in the training data", cell)
	}
	return v, t.finite(v, row, column)
}

// finite returns an error if v, the number in a cell, is infinite or NaN.
func (t *Table) finite(v float64, row, column int) error {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return t.Errorf(row, column, "%.60s is not a finite number; leave the cell empty if the value is missing", t.Cells[row][column])
	}
	return nil
}

// number returns the number that a cell contains. It may be infinite or NaN.
func number(cell string) (v float64, ok bool) {
	for i := range len(cell) {
		switch cell[i] {
		case 'x', 'X', 'p', 'P', '_': // hexadecimal and grouped digits of Go
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(cell, 64)
	return v, err == nil || math.IsInf(v, 0)
}

// Numeric reports whether a column has only numbers and missing values in these rows.
func (t *Table) Numeric(column int, rows []int32) bool {
	for _, r := range rows {
		if cell := t.Cells[r][column]; !absent(cell) {
			if _, ok := number(cell); !ok {
				return false
			}
		}
	}
	return true
}

// Texts returns the different values of a column in these rows, sorted, without missing
// ones.
func (t *Table) Texts(column int, rows []int32) []string {
	seen := map[string]bool{}
	var all []string
	for _, r := range rows {
		if cell := t.Cells[r][column]; !absent(cell) && !seen[cell] {
			seen[cell] = true
			all = append(all, cell)
		}
	}
	slices.Sort(all)
	return all
}

// encode sets to, which is all zeros and has the column's width, to what a cell becomes.
func (c *Column) encode(to []float32, t *Table, row, column int) error {
	cell := t.Cells[row][column]
	if len(c.Categories) > 0 {
		if at, known := slices.BinarySearch(c.Categories, cell); known && !absent(cell) {
			to[at] = 1
		}
		return nil
	}
	if absent(cell) {
		if c.Indicator {
			to[1] = 1
		}
		return nil
	}
	v, err := t.number(row, column)
	to[0] = float32((v - c.Mean) / c.Deviation)
	if err == nil && math.IsInf(float64(to[0]), 0) {
		return t.Errorf(row, column, "%.60s is too far from the numbers of the training data (mean %.3g, deviation %.3g)", cell, c.Mean, c.Deviation)
	}
	return err
}

// Width returns the number of numbers that a row of these columns becomes.
func Width(columns []Column) int {
	n := 0
	for i := range columns {
		n += columns[i].Width()
	}
	return n
}

// Encode returns rows of a table as numbers, [len(rows), Width(columns)] row-major. The
// table must have all these columns.
func (t *Table) Encode(columns []Column, rows []int32) ([]float32, error) {
	from := make([]int, len(columns)) // where each is in the table
	at := make(map[string]int, len(t.Columns))
	for i, name := range t.Columns {
		at[name] = i
	}
	for i := range columns {
		var ok bool
		if from[i], ok = at[columns[i].Name]; !ok {
			return nil, fmt.Errorf("%s has no column %q", t.Path, columns[i].Name)
		}
	}
	x := make([]float32, len(rows)*Width(columns))
	to := 0
	for _, r := range rows { // by rows, because the cells of a row lie together in memory
		for i := range columns {
			width := columns[i].Width()
			if err := columns[i].encode(x[to:to+width], t, int(r), from[i]); err != nil {
				return nil, err
			}
			to += width
		}
	}
	return x, nil
}
