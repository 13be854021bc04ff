package data

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Table is the text of a CSV file: rows of cells under named columns.
type Table struct {
	Path    string // for errors
	Columns []string
	Cells   [][]string // [rows][columns], without spaces at their ends
	Bytes   float64    // that the cells take in memory
	lines   []int32    // where each row begins in the file, from 1
}

// Bounds of a table. Lines are counted in 32 bits.
const (
	mostColumns = 1 << 16
	mostRows    = 1 << 30
)

// mostLine is the maximum length of a line, with the lines of its quoted cells, in bytes.
const mostLine = 16 << 20

// errLongLine is returned by a lineLimit.
var errLongLine = fmt.Errorf("longer than %d MiB", mostLine>>20)

// A lineLimit reads no more than left bytes.
type lineLimit struct {
	from io.Reader
	left int
}

// Read implements io.Reader.
func (l *lineLimit) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errLongLine
	}
	n, err := l.from.Read(p)
	l.left -= n
	return n, err
}

// cellBytes is what a cell takes in memory besides its text.
const cellBytes = 16

// ReadTable reads a CSV file, plain or compressed by gzip, as RFC 4180 describes it. The
// first line names the columns. Whichever of comma, semicolon and tab occurs most often in
// it, outside quotes, separates cells. A byte order mark is skipped, and so are empty
// lines. It returns an error, and reads no further, once the table takes more than room
// bytes of memory.
func ReadTable(path string, room float64) (*Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the CSV file: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory, not a CSV file", path)
	}
	r, err := Decompress(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return ParseTable(r, path, room)
}

// ParseTable is ReadTable from r. Errors call it name.
func ParseTable(r io.Reader, name string, room float64) (*Table, error) {
	all, err := NewTableReader(r, name)
	if err != nil {
		return nil, err
	}
	for {
		err := all.next()
		switch {
		case errors.Is(err, io.EOF):
			return &all.table, nil
		case err != nil:
			return nil, err
		case all.table.Bytes > room:
			return nil, fmt.Errorf("%s takes more than the %.3g GB of memory of this machine", name, room/1e9)
		}
	}
}

// A TableReader reads a table in parts.
type TableReader struct {
	limit  *lineLimit // of lines
	lines  *csv.Reader
	line   int   // the end of the last one that was read, in the file
	table  Table // rows that have been read and not been returned
	failed error // of the last line; the rows before it are returned first
}

// NewTableReader reads the header of a table, as ReadTable does.
func NewTableReader(r io.Reader, name string) (*TableReader, error) {
	limit := &lineLimit{from: r, left: mostLine}
	in := bufio.NewReaderSize(limit, 1<<16)
	if mark, _ := in.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = in.Discard(3) // cannot fail: they have been peeked at
	}
	start, _ := in.Peek(in.Size())
	t := &TableReader{limit: limit, lines: csv.NewReader(in), table: Table{Path: name}}
	t.lines.Comma, t.lines.FieldsPerRecord, t.lines.ReuseRecord = separator(start), -1, true
	err := t.next()
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%s is empty: its first line must name the columns", name)
	}
	return t, err
}

// Header returns a table with the columns and no rows.
func (t *TableReader) Header() *Table { return &Table{Path: t.table.Path, Columns: t.table.Columns} }

// Read returns a table of the next rows, at most n, or io.EOF after the last. It returns
// the rows before a bad line first.
func (t *TableReader) Read(n int) (*Table, error) {
	t.table.Cells, t.table.lines, t.table.Bytes = nil, nil, 0
	for t.failed == nil && t.table.Rows() < n {
		t.failed = t.next()
	}
	if t.table.Rows() == 0 && t.failed != nil {
		return nil, t.failed
	}
	rows := t.table
	return &rows, nil
}

// next reads a line into the table.
func (t *TableReader) next() error {
	t.limit.left = mostLine
	cells, err := t.lines.Read()
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, errLongLine):
		return fmt.Errorf("%s:%d: the line is %w; a quote that is not closed joins lines", t.table.Path, t.line+1, err)
	case err != nil:
		return t.table.broken(err)
	}
	line, _ := t.lines.FieldPos(0)
	end, _ := t.lines.FieldPos(len(cells) - 1)
	t.line = end + strings.Count(cells[len(cells)-1], "\n")
	if err := t.table.add(line, cells); err != nil {
		return err
	}
	for _, cell := range cells {
		t.table.Bytes += cellBytes + float64(len(cell))
	}
	return nil
}

// separator returns the separator of cells in a file that begins with start.
func separator(start []byte) rune {
	count, quoted := map[byte]int{}, false
	for _, c := range bytes.TrimLeft(start, "\r\n") { // empty lines are skipped
		if c == '\n' && !quoted {
			break
		}
		if c == '"' {
			quoted = !quoted
		}
		if !quoted {
			count[c]++
		}
	}
	best := byte(',')
	for _, c := range []byte{';', '\t'} {
		if count[c] > count[best] {
			best = c
		}
	}
	return rune(best)
}

// broken returns the error for a file that is not CSV.
func (t *Table) broken(err error) error {
	var parse *csv.ParseError
	if !errors.As(err, &parse) {
		return fmt.Errorf("%s: %w", t.Path, err)
	}
	if parse.StartLine != parse.Line {
		return fmt.Errorf("%s:%d: a quoted cell that begins in this line does not end properly by line %d, byte %d; write a quote inside it twice, and close it", t.Path, parse.StartLine, parse.Line, parse.Column)
	}
	return fmt.Errorf("%s:%d: byte %d: %w; put no spaces around a quoted cell, write a quote inside it twice, and quote a cell that has one", t.Path, parse.Line, parse.Column, parse.Err)
}

// add adds a line of the file.
func (t *Table) add(line int, cells []string) error {
	for i, cell := range cells {
		if !utf8.ValidString(cell) {
			return fmt.Errorf("%s:%d: column %d is not valid UTF-8; convert the file", t.Path, line, i+1)
		}
	}
	if t.Columns == nil {
		return t.name(line, cells)
	}
	if len(cells) != len(t.Columns) {
		return fmt.Errorf("%s:%d: the line has %d columns, but the header has %d; %s", t.Path, line, len(cells), len(t.Columns), t.ragged(len(cells)))
	}
	if len(t.Cells) >= mostRows {
		return fmt.Errorf("%s has more than %d rows", t.Path, mostRows)
	}
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = strings.TrimSpace(cell)
	}
	t.Cells, t.lines = append(t.Cells, row), append(t.lines, int32(line))
	return nil
}

// ragged says where a line with n cells ends too early or too late.
func (t *Table) ragged(n int) string {
	if n < len(t.Columns) {
		return fmt.Sprintf("it ends before column %q", t.Columns[n])
	}
	return fmt.Sprintf("it continues after column %q", t.Columns[len(t.Columns)-1])
}

// name sets the names of the columns.
func (t *Table) name(line int, cells []string) error {
	if len(cells) > mostColumns {
		return fmt.Errorf("%s:%d: the header has %d columns, more than %d", t.Path, line, len(cells), mostColumns)
	}
	at := map[string]int{}
	for i, cell := range cells {
		name := strings.TrimSpace(cell)
		if name == "" {
			return fmt.Errorf("%s:%d: column %d has no name; name it, or remove it from the file", t.Path, line, i+1)
		}
		if strings.ContainsFunc(name, invisible) {
			return fmt.Errorf("%s:%d: the name of column %d, %q, has an invisible character; remove it, or check that this is a CSV file", t.Path, line, i+1, name)
		}
		if first, taken := at[name]; taken {
			return fmt.Errorf("%s:%d: columns %d and %d are both called %q; rename one of them", t.Path, line, first, i+1, name)
		}
		at[name] = i + 1
		t.Columns = append(t.Columns, name)
	}
	return nil
}

// invisible reports whether a character is a control character or a byte order mark. Names of
// columns may have several lines.
func invisible(c rune) bool {
	return unicode.IsControl(c) && !strings.ContainsRune("\n\r\t", c) || c == byteOrderMark
}

// Rows returns the number of rows.
func (t *Table) Rows() int { return len(t.Cells) }

// Errorf returns an error about a cell, with the line in the file and the name of the
// column.
func (t *Table) Errorf(row, column int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: column %q: %s", t.Path, t.lines[row], t.Columns[column], fmt.Sprintf(format, args...))
}

// Index returns the index of a column, or -1.
func (t *Table) Index(column string) int { return slices.Index(t.Columns, column) }

// absent reports whether a cell stands for a missing value.
func absent(cell string) bool { return cell == "" || cell == "NA" }
