package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job/machine"
)

// A TableDataset is a Dataset of rows under named columns. Your own program may register
// others.
type TableDataset interface {
	Dataset
	// Tables returns the rows to train on and those to evaluate on. Both have the same
	// columns. A dataset to evaluate or predict has no training rows.
	Tables() (train, test TableRows)
	// Columns returns how the columns of a dataset to train on become numbers, except the
	// one to predict, in the order of the file.
	Columns() []data.Column
}

// TableRows are some rows of a table.
type TableRows struct {
	Table *data.Table
	Rows  []int32 // in ascending order
}

// tableData is the built-in kind of table.
var tableData = struct {
	name string
	DataKind
}{"csv", DataKind{
	Usage: "csv:FILE", Doc: "rows under a header line that names the columns",
	Options: []string{OptionTarget, OptionHoldout, OptionTest}, Holdout: .2,
	Train: csvRows, Test: csvTest, Input: findTable, Suffixes: []string{".csv", ".tsv"},
}}

// table is a TableDataset.
type table struct {
	info        Info
	task        string
	train, test TableRows
	columns     []data.Column
}

// Info implements Dataset.
func (d *table) Info() Info { return d.info }

// Task implements Dataset.
func (d *table) Task() string { return d.task }

// Tables implements TableDataset.
func (d *table) Tables() (train, test TableRows) { return d.train, d.test }

// Columns implements TableDataset.
func (d *table) Columns() []data.Column { return d.columns }

// readTable reads a CSV file that must have rows. It returns an error if the memory of
// this machine is too small for them.
func readTable(path string) (*data.Table, error) {
	t, err := data.ReadTable(path, float64(machine.Memory()))
	if err == nil && t.Rows() == 0 {
		return nil, fmt.Errorf("%s has no rows below its header", path)
	}
	return t, err
}

// csvRows reads the whole file: a CSV file does not say elsewhere how many rows it has,
// and which columns are numbers.
func csvRows(path string, o Options) (Dataset, error) {
	if path == "" {
		return nil, fmt.Errorf("data %q names no file; write csv:FILE", "csv:")
	}
	if err := data.ReadableAgain(path, "table"); err != nil {
		return nil, err
	}
	if err := data.ReadableAgain(o.Test, "table"); err != nil {
		return nil, optionErrorf(OptionTest, "%w", err)
	}
	t, err := readTable(path)
	if err != nil {
		return nil, err
	}
	target := t.Index(o.Target)
	switch {
	case o.Target == "":
		return nil, optionErrorf(OptionTarget, "is missing: name the column to predict; %s has %s", path, columnsOf(t))
	case target < 0:
		return nil, optionErrorf(OptionTarget, "%s: %s has no such column%s", o.Target, path, nearest(o.Target, t))
	case len(t.Columns) == 1:
		return nil, optionErrorf(OptionTarget, "%s: %s has no other column to predict it from", o.Target, path)
	}
	d := &table{info: Info{Name: "csv:" + path, Options: o}, train: TableRows{Table: t}, test: TableRows{Table: t}}
	if d.train.Rows, d.test, err = divide(t, o); err != nil {
		return nil, err
	}
	var doubts []string
	for i := range t.Columns {
		if i == target {
			continue
		}
		c, err := t.Fit(i, d.train.Rows)
		if err != nil {
			return nil, err
		}
		d.columns = append(d.columns, c)
		if n := len(c.Categories); n > 0 {
			doubts = append(doubts, cmp.Or(t.Doubt(i, d.train.Rows), t.DoubtTexts(i, d.train.Rows, n, "each becomes a category, which new rows will not have: remove the column, or choose others with Columns.v1")))
		}
	}
	d.doubt(doubts)
	d.task = classificationTask
	if t.Numeric(target, data.Range(nil, 0, t.Rows())) {
		d.task = regressionTask
	}
	d.info.Train, d.info.Test = len(d.train.Rows), len(d.test.Rows)
	d.info.Bytes = t.Bytes + float64((d.info.Train+d.info.Test)*(4*data.Width(d.columns)+4))
	if d.test.Table != t {
		d.info.Bytes += d.test.Table.Bytes
	}
	return d, nil
}

// mostDoubts is how many warnings about columns are spelled out.
const mostDoubts = 3

// doubt adds warnings about columns to the Info. Empty ones are none.
func (d *table) doubt(all []string) {
	all = slices.DeleteFunc(all, func(text string) bool { return text == "" })
	if n := len(all) - mostDoubts; n > 1 {
		all = append(all[:mostDoubts], fmt.Sprintf("%s: %d more columns deserve such a warning", d.train.Table.Path, n))
	}
	d.info.Warnings = append(d.info.Warnings, all...)
}

// divide returns the rows of t to train on, and the rows to evaluate on.
func divide(t *data.Table, o Options) (train []int32, test TableRows, err error) {
	if o.Test == "" {
		test.Table = t
		train, test.Rows = data.Holdout(t.Rows(), o.Holdout)
		switch {
		case len(train) == 0:
			return nil, test, optionErrorf(OptionHoldout, "%v leaves none of the %d rows of %s to train on: lower it", o.Holdout, t.Rows(), t.Path)
		case len(test.Rows) == 0:
			return nil, test, optionErrorf(OptionHoldout, "%v leaves none of the %d rows of %s to evaluate on: raise it, or use --%s", o.Holdout, t.Rows(), t.Path, OptionTest)
		}
		return train, test, nil
	}
	if test.Table, err = readTable(o.Test); err != nil {
		return nil, test, optionErrorf(OptionTest, "%s: %w", o.Test, err)
	}
	if why := unlike(test.Table, t.Columns, ""); why != "" {
		return nil, test, optionErrorf(OptionTest, "%s: the file %s; it must have the columns of %s", o.Test, why, t.Path)
	}
	test.Rows = data.Range(nil, 0, test.Table.Rows())
	return data.Range(nil, 0, t.Rows()), test, nil
}

// unlike says how the columns of t differ from those that it must have, in any order, and
// one that it may have. It returns "" if they do not.
func unlike(t *data.Table, must []string, may string) string {
	has, needed := set(t.Columns), set(must)
	for _, name := range must {
		if !has[name] {
			return fmt.Sprintf("has no column %q%s", name, nearest(name, t))
		}
	}
	for _, name := range t.Columns {
		if name != may && !needed[name] {
			return fmt.Sprintf("has another column, %q", name)
		}
	}
	return ""
}

func set(names []string) map[string]bool {
	all := make(map[string]bool, len(names))
	for _, name := range names {
		all[name] = true
	}
	return all
}

// nearest suggests the column of t whose name is closest to name.
func nearest(name string, t *data.Table) string {
	if n := config.Nearest(name, t.Columns); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	return "; it has " + columnsOf(t)
}

// columnsOf lists the columns of a table, for errors.
func columnsOf(t *data.Table) string {
	const most = 10
	if n := len(t.Columns); n > most {
		return strings.Join(t.Columns[:most], ", ") + fmt.Sprintf(" and %d more", n-most)
	}
	return strings.Join(t.Columns, ", ")
}

// csvTest finds rows for a trained model.
func csvTest(path string, _ bool) (Dataset, error) {
	if path == "" {
		return nil, fmt.Errorf("data %q names no file; write csv:FILE", "csv:")
	}
	t, err := readTable(path)
	if err != nil {
		return nil, err
	}
	return testTable(t), nil
}

// testTable returns a dataset of all rows of t.
func testTable(t *data.Table) *table {
	return &table{
		info: Info{Name: "csv:" + t.Path, Test: t.Rows(), Bytes: t.Bytes},
		test: TableRows{Table: t, Rows: data.Range(nil, 0, t.Rows())},
	}
}
