package catalog

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/ringtrain/ringtrain/trainer/data"
)

// tableInput is a Dataset of rows to predict from, which are read in order, so that they
// need not fit into memory.
type tableInput struct {
	in     Input
	header *data.Table // without rows
}

// errNoLabels is why rows of an Input cannot be evaluated.
var errNoLabels = errors.New("these rows are only to be predicted; name the file with --data to compare predictions")

// findTable finds the rows of a file or a stream. It reads the header.
func findTable(in Input) (Dataset, error) {
	for i, name := range in.Files {
		if i > 0 {
			return nil, fmt.Errorf("%s is another CSV file; predict from one at a time", name)
		}
		if err := regular(name); err != nil {
			return nil, err
		}
	}
	t := &tableInput{}
	var err error
	t.in, err = in.First(func(p Part) error {
		rows, err := data.NewTableReader(p, p.Name)
		if err != nil {
			return err
		}
		t.header = rows.Header()
		_, err = rows.Read(1)
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s has no rows below its header", p.Name)
		}
		return err
	})
	if err == nil && t.header == nil {
		err = errors.New("there are no rows to predict from")
	}
	return t, err
}

// Info implements Dataset. The number of rows is not known.
func (t *tableInput) Info() Info { return Info{Name: "csv:" + t.header.Path} }

// Task implements Dataset. No task trains on these rows.
func (t *tableInput) Task() string { return "" }

// tables returns the rows in parts of at most this many. It yields the rows before a bad
// line first, and then the error.
func (t *tableInput) tables(rows int) iter.Seq2[TableRows, error] {
	return func(yield func(TableRows, error) bool) {
		for part, err := range t.in.Parts() {
			var from *data.TableReader
			if err == nil {
				from, err = data.NewTableReader(part, part.Name)
			}
			for err == nil {
				var some *data.Table
				if some, err = from.Read(rows); err == nil && !yield(TableRows{Table: some, Rows: data.Range(nil, 0, some.Rows())}, nil) {
					return
				}
			}
			if !errors.Is(err, io.EOF) {
				yield(TableRows{}, err)
				return
			}
		}
	}
}
