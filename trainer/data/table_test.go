package data

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func parseTable(t testing.TB, text string) *Table {
	t.Helper()
	table, err := ParseTable(strings.NewReader(text), "t.csv", 1e9)
	require.NoError(t, err)
	return table
}

func TestParseTable(t *testing.T) {
	want := [][]string{{"1", "x"}, {"2", "y"}}
	for name, text := range map[string]string{
		"commas":          "a,b\n1,x\n2,y\n",
		"semicolons":      "a;b\n1;x\n2;y\n",
		"tabs":            "a\tb\n1\tx\n2\ty\n",
		"no newline":      "a,b\n1,x\n2,y",
		"Windows":         "\xef\xbb\xbfa,b\r\n1,x\r\n2,y\r\n",
		"spaces":          " a , b\n 1, x \n2 ,y\n",
		"quotes":          "\"a\",\"b\"\n\"1\",\"x\"\n2,\"y\"\n",
		"empty lines":     "a,b\n\n1,x\n\n2,y\n\n",
		"empty at first":  "\n\r\na;b\n1;x\n2;y\n",
		"other separator": "a,b\n1,x\n2,y\n;;;;;;",
	} {
		if name == "other separator" {
			_, err := ParseTable(strings.NewReader(text), "t.csv", 1e9)
			require.ErrorContains(t, err, "t.csv:4: the line has 1 columns, but the header has 2; it ends before column \"b\"")
			continue
		}
		table := parseTable(t, text)
		require.Equal(t, []string{"a", "b"}, table.Columns, name)
		require.Equal(t, want, table.Cells, name)
	}
	table := parseTable(t, "\"a;,;\";b\n\"x;\"\"y\";\"two\nlines\"\nz;1\n")
	require.Equal(t, []string{"a;,;", "b"}, table.Columns)
	require.Equal(t, [][]string{{"x;\"y", "two\nlines"}, {"z", "1"}}, table.Cells)
	require.EqualError(t, table.Errorf(1, 1, "is %d", 1), `t.csv:4: column "b": is 1`)
	require.Equal(t, 1, table.Index("b"))
	require.Equal(t, -1, table.Index("c"))
	require.Equal(t, float64(2*2*cellBytes+4+9+1+1+2*cellBytes+5), table.Bytes)
}

func TestBrokenTables(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "t.csv is empty: its first line must name the columns",
		"a,b\n1\n":            `t.csv:2: the line has 1 columns, but the header has 2; it ends before column "b"`,
		"a,b\n1,2\n\n1,2,3\n": `t.csv:4: the line has 3 columns, but the header has 2; it continues after column "b"`,
		"a,b\n\"1\n\",\"2\n\n\"\n1," + strings.Repeat("2", mostLine+1<<17) + "\n": "t.csv:6: the line is longer than 16 MiB; a quote that is not closed joins lines",
		"\ufeff\ufeffa,b\n": `t.csv:1: the name of column 1, "\ufeffa", has an invisible character; remove it, or check that this is a CSV file`,
		"a,b\x00\n":         `t.csv:1: the name of column 2, "b\x00", has an invisible character; remove it, or check that this is a CSV file`,
		"a,,b\n":            "t.csv:1: column 2 has no name; name it, or remove it from the file",
		"a,b, a\n":          `t.csv:1: columns 1 and 3 are both called "a"; rename one of them`,
		"a,b\n1,\xff\n":     "t.csv:2: column 2 is not valid UTF-8; convert the file",
		"a,b\n1,x\"y\n":     "t.csv:2: byte 4: bare \" in non-quoted-field; put no spaces around a quoted cell, write a quote inside it twice, and quote a cell that has one",
		"a,b\n1, \"x\"\n":   "t.csv:2: byte 4: bare \" in non-quoted-field; put no spaces around a quoted cell, write a quote inside it twice, and quote a cell that has one",
		"a,b\n\"1\" ,x\n":   "t.csv:2: byte 3: extraneous or missing \" in quoted-field; put no spaces around a quoted cell, write a quote inside it twice, and quote a cell that has one",
		"a,b\n\"1,x\n2,y\n": "t.csv:2: a quoted cell that begins in this line does not end properly by line 3, byte 5; write a quote inside it twice, and close it",
		"a,b\n1,\"x\n":      "t.csv:2: byte 6: extraneous or missing \" in quoted-field; put no spaces around a quoted cell, write a quote inside it twice, and quote a cell that has one",
	} {
		_, err := ParseTable(strings.NewReader(text), "t.csv", 1e9)
		require.EqualError(t, err, want, "%q", text[:min(len(text), 100)])
	}
	_, err := ParseTable(strings.NewReader(strings.Repeat("a,", mostColumns)+"b\n"), "t.csv", 1e9)
	require.ErrorContains(t, err, "t.csv:1: the header has 65537 columns, more than 65536")
	_, err = ParseTable(strings.NewReader("a,b\n"+strings.Repeat("1,2\n", 1000)), "t.csv", 20_000)
	require.ErrorContains(t, err, "t.csv takes more than the 2e-05 GB of memory of this machine")
}

// A TableReader returns what ParseTable does, in parts, and the rows before a bad line.
func TestTableReader(t *testing.T) {
	const text = "a;b\n1;2\n\n3;4\n5;6\n"
	all := parseTable(t, text)
	r, err := NewTableReader(strings.NewReader(text), "t.csv")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, r.Header().Columns)
	require.Zero(t, r.Header().Rows())
	var cells [][]string
	for _, want := range []int{2, 1} {
		part, err := r.Read(2)
		require.NoError(t, err)
		require.Equal(t, want, part.Rows())
		cells = append(cells, part.Cells...)
	}
	require.Equal(t, all.Cells, cells)
	_, err = r.Read(2)
	require.ErrorIs(t, err, io.EOF)

	r, err = NewTableReader(strings.NewReader(text+"7\n8;9\n"), "t.csv")
	require.NoError(t, err)
	part, err := r.Read(10)
	require.NoError(t, err)
	require.Equal(t, 3, part.Rows())
	require.EqualError(t, part.Errorf(2, 1, "boo"), `t.csv:5: column "b": boo`)
	for range 2 {
		_, err = r.Read(10)
		require.ErrorContains(t, err, "t.csv:6: the line has 1 columns")
	}
}

func TestReadTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	require.NoError(t, os.WriteFile(path, []byte("a,b\n1,2\n"), 0o600))
	table, err := ReadTable(path, 1e9)
	require.NoError(t, err)
	require.Equal(t, 1, table.Rows())
	_, err = ReadTable(path+"x", 1e9)
	require.ErrorContains(t, err, "cannot read the CSV file: open "+path+"x")
	_, err = ReadTable(t.TempDir(), 1e9)
	require.ErrorContains(t, err, "is a directory, not a CSV file")
}

// fitted returns the columns of a table, fitted to rows.
func fitted(t testing.TB, table *Table, rows []int32) []Column {
	t.Helper()
	var all []Column
	for i := range table.Columns {
		c, err := table.Fit(i, rows)
		require.NoError(t, err)
		all = append(all, c)
	}
	require.NoError(t, CheckColumns(all))
	return all
}

// Columns are fitted to the training rows alone. What other rows have that these do not
// has no effect on them.
func TestColumns(t *testing.T) {
	table := parseTable(t, "n,text,gaps,constant,none\n1,b,5,7,\n3,a,,7,NA\n5,,9,7,\n99,c,,8,1\nNA,a,7,,2\n")
	train := []int32{0, 1, 2}
	columns := fitted(t, table, train)
	deviation := math.Sqrt(8. / 3)
	require.Equal(t, []Column{
		{Name: "n", Mean: 3, Deviation: deviation},
		{Name: "text", Categories: []string{"a", "b"}},
		{Name: "gaps", Mean: 7, Deviation: 2, Indicator: true},
		{Name: "constant", Mean: 7, Deviation: 1},
		{Name: "none", Deviation: 1, Indicator: true},
	}, columns)
	require.Equal(t, 8, Width(columns))
	x, err := table.Encode(columns, []int32{0, 1, 2, 3, 4})
	require.NoError(t, err)
	low, high := float32(-2/deviation), float32(96/deviation)
	require.Equal(t, []float32{
		low, 0, 1, -1, 0, 0, 0, 1,
		0, 1, 0, 0, 1, 0, 0, 1,
		-low, 0, 0, 1, 0, 0, 0, 1,
		high, 0, 0, 0, 1, 1, 1, 0, // an unknown category
		0, 1, 0, 0, 0, 0, 2, 0, // numbers that are missing only here become the mean
	}, x)

	other := parseTable(t, "text,n,none,constant,gaps\nb,1,,7,5\n")
	y, err := other.Encode(columns, []int32{0})
	require.NoError(t, err)
	require.Equal(t, x[:8], y, "columns in another order")
}

// A few odd cells make a column of numbers one of categories, which deserves a warning.
func TestDoubt(t *testing.T) {
	numbers := strings.Repeat("1.5,1\n", 18)
	for cells, want := range map[string]string{
		"2,1\n3,1\n":      "",
		"?,1\n,1\nNA,1\n": `:20: column "a": "?" is not a number, as 18 of 19 values of the column are, so every text in it is a category`,
		"?,1\nx,1\n":      `:20: column "a": "?" is not a number, as 18 of 20`,
		"?,1\nx,1\ny,1\n": "",
	} {
		table := parseTable(t, "a,y\n"+numbers+cells)
		require.Equal(t, want == "" && cells[0] == '2', table.Numeric(0, Range(nil, 0, table.Rows())))
		doubt := table.Doubt(0, Range(nil, 0, table.Rows()))
		require.Contains(t, doubt, want)
		require.Equal(t, want == "", doubt == "")
	}
	commas := parseTable(t, "a;y\n1,5;1\n2;1\n-,25;1\n3,5e2;1\n")
	require.Contains(t, commas.Doubt(0, Range(nil, 0, 4)), `:2: column "a": "1,5" has a comma, so every text in the column is a category; write numbers with a decimal point`)
	require.Empty(t, parseTable(t, "a,y\nb,1\nc,2\n").Doubt(0, []int32{0, 1}))
	require.Empty(t, parseTable(t, "a,y\n,1\nNA,2\n").Doubt(0, []int32{0, 1}))
}

// Numbers with units or separators are texts, which is hardly meant.
func TestDoubtDressedNumbers(t *testing.T) {
	for _, cell := range []string{"12%", "$1.2", "1 234", "1'234", "\"12,345.67\"", "3 €"} {
		table := parseTable(t, "a\n7\n"+strings.Repeat(cell+"\n", 10))
		require.Regexp(t, `^t.csv:3: column "a": ".*" is a number with other characters, so every text in the column is a category; write plain numbers such as 1234.5$`, table.Doubt(0, Range(nil, 0, table.Rows())))
	}
	table := parseTable(t, "a\n"+strings.Repeat("2026-11-28\n", 10)+"%\n")
	require.Empty(t, table.Doubt(0, Range(nil, 0, table.Rows())))
}

// A column of texts that hardly repeat is no column of categories.
func TestDoubtTexts(t *testing.T) {
	for _, c := range []struct{ rows, different, missing, want int }{{20, 20, 0, 20}, {20, 11, 5, 20}, {20, 10, 0, 0}, {19, 19, 9, 0}, {100, 51, 0, 100}} {
		text := "a,b\n" + strings.Repeat(",\n", c.missing)
		for i := range c.rows {
			text += fmt.Sprintf("text %d,1\n", i%c.different)
		}
		table := parseTable(t, text)
		rows, want := Range(nil, 0, table.Rows()), ""
		if c.want > 0 {
			want = fmt.Sprintf(`t.csv: column "a" has %d different texts in %d rows; so?`, c.different, c.want)
		}
		require.Equal(t, want, table.DoubtTexts(0, rows, len(table.Texts(0, rows)), "so?"))
	}
}

// The sum of equal numbers, divided by how many there are, may be another number.
func TestConstantColumns(t *testing.T) {
	for cell, want := range map[string]float64{"0.1": .1, "-0.3": -.3, "1.7e308": 1.7e308, "5e-324": 5e-324} {
		table := parseTable(t, "a\n"+strings.Repeat(cell+"\n", 10)+"1\n")
		columns := fitted(t, table, Range(nil, 0, 10))
		require.Equal(t, []Column{{Name: "a", Mean: want, Deviation: 1}}, columns)
		x, err := table.Encode(columns, []int32{9})
		require.NoError(t, err)
		require.Equal(t, []float32{0}, x)
		_, _, err = table.Moments(0, Range(nil, 0, 10))
		require.EqualError(t, err, `t.csv:2: column "a": all training rows have the value `+cell+`, so there is nothing to predict`)
	}
	table := parseTable(t, "a\n1e-163\n2e-163\n")
	_, _, err := table.Moments(0, []int32{0, 1})
	require.EqualError(t, err, `t.csv:2: column "a": the numbers of the column differ too little to compute their deviation; scale them up`)
	require.EqualValues(t, 1, fitted(t, table, []int32{0, 1})[0].Deviation, "an input may be constant")
}

func TestBadColumns(t *testing.T) {
	rows := []int32{0, 1}
	for cells, want := range map[string]string{
		"1\nNaN\n":         `t.csv:3: column "a": NaN is not a finite number; leave the cell empty if the value is missing`,
		"1\n-inf\n":        `t.csv:3: column "a": -inf is not a finite number; leave the cell empty if the value is missing`,
		"1e999\n2\n":       `t.csv:2: column "a": 1e999 is not a finite number; leave the cell empty if the value is missing`,
		"-1e308\n1e308\n":  `t.csv:2: column "a": the numbers of the column are too large to compute their deviation; scale them down`,
		"1.7e308\n1e308\n": `t.csv:2: column "a": the numbers of the column are too large to compute their deviation; scale them down`,
	} {
		_, err := parseTable(t, "a\n"+cells).Fit(0, rows)
		require.EqualError(t, err, want)
	}
	c, err := parseTable(t, "a\n0x10\n1_000\n").Fit(0, rows)
	require.NoError(t, err)
	require.Equal(t, []string{"0x10", "1_000"}, c.Categories, "not numbers")

	var many strings.Builder
	for i := range mostCategories + 1 {
		many.WriteString("\n1," + string(rune('a'+i%26)) + strings.Repeat("x", i/26))
	}
	table := parseTable(t, "a,b"+many.String()+"\n")
	_, err = table.Fit(1, Range(nil, 0, table.Rows()))
	require.ErrorContains(t, err, `t.csv:2: column "b": the column has 1001 different texts, more than 1000`)

	table = parseTable(t, "a\n1\n2\nlow\n1e300\n")
	columns := fitted(t, table, rows)
	_, err = table.Encode(columns, []int32{2})
	require.EqualError(t, err, `t.csv:4: column "a": "low" is not a number, as the column has in the training data`)
	_, err = table.Encode(columns, []int32{3})
	require.ErrorContains(t, err, `t.csv:5: column "a": 1e300 is too far from the numbers of the training data (mean 1.5, deviation 0.5)`)
}

func TestTargets(t *testing.T) {
	table := parseTable(t, "text,number,one,gap,mixed,nan\nb,10,1,,1,1\na,9,1,2,x,NaN\nb,10,1,3,2,1\n")
	classes, err := table.Classes(0)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, classes)
	classes, err = table.Classes(1)
	require.NoError(t, err)
	require.Equal(t, []string{"9", "10"}, classes, "in the order of numbers")
	classes, err = table.Classes(4)
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2", "x"}, classes)
	for column, want := range map[int]string{
		2: `t.csv:2: column "one": all rows have the class "1"; a classification needs at least two`,
		3: `t.csv:2: column "gap": the value to predict is missing; fill it in, or remove the row`,
		5: `t.csv:3: column "nan": NaN is not a finite number; leave the cell empty if the value is missing`,
	} {
		_, err := table.Classes(column)
		require.EqualError(t, err, want)
	}

	mean, deviation, err := table.Moments(1, []int32{0, 1})
	require.NoError(t, err)
	require.Equal(t, []float64{9.5, .5}, []float64{mean, deviation})
	for column, want := range map[int]string{
		0: `t.csv:2: column "text": "b" is not a number, which a regression predicts`,
		2: `t.csv:2: column "one": all training rows have the value 1, so there is nothing to predict`,
		3: `t.csv:2: column "gap": the value to predict is missing; fill it in, or remove the row`,
		5: `t.csv:3: column "nan": NaN is not a finite number; leave the cell empty if the value is missing`,
	} {
		_, _, err := table.Moments(column, []int32{0, 1, 2})
		require.EqualError(t, err, want)
	}
}

func TestCheckColumns(t *testing.T) {
	good := Column{Name: "a", Deviation: 1}
	require.NoError(t, CheckColumns([]Column{good, {Name: "b", Categories: []string{"x", "y"}}}))
	for _, bad := range [][]Column{
		nil, {good, good}, {{Deviation: 1}}, {{Name: "a"}}, {{Name: "a", Deviation: -1}}, {{Name: "a", Deviation: math.Inf(1)}},
		{{Name: "a", Categories: []string{"y", "x"}}}, {{Name: "a", Categories: []string{"x", "x"}}},
		{{Name: "a", Categories: make([]string, mostCategories+1)}}, make([]Column, mostColumns+1),
	} {
		require.Error(t, CheckColumns(bad), "%v", bad)
	}
}

// The two parts have every row once, the same in every run, and not those at the end.
func TestHoldout(t *testing.T) {
	train, test := Holdout(10, .3)
	require.Equal(t, []int32{0, 2, 3, 5, 6, 7, 8}, train)
	require.Equal(t, []int32{1, 4, 9}, test)
	_, all := Holdout(10, 1.5)
	require.Equal(t, Range(nil, 0, 10), all)
	_, none := Holdout(10, -.5)
	require.Empty(t, none)
	for _, rows := range []int{1, 2, 7, 150} {
		for _, fraction := range []float64{.001, .2, .5, .999} {
			train, test := Holdout(rows, fraction)
			require.Len(t, test, int(math.Round(fraction*float64(rows))))
			require.ElementsMatch(t, Range(nil, 0, rows), append(train, test...))
		}
	}
}

// Any bytes are a table or an error. Columns of a table become numbers without NaN, for
// all rows or with an error.
func FuzzTable(f *testing.F) {
	for _, text := range []string{"a,b\n1,2\n", "a;b\n\"x\n\";NA\n", "\xef\xbb\xbfa\n1e999\n", "a,b\n,\n-0,1e-320\n", "a\n\"", "\n\n,\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := ParseTable(strings.NewReader(string(text)), "t.csv", 1e6)
		if err != nil {
			return
		}
		train, test := Holdout(table.Rows(), .2)
		var columns []Column
		for i := range table.Columns {
			c, err := table.Fit(i, train)
			if err != nil {
				return
			}
			columns = append(columns, c)
		}
		require.NoError(t, CheckColumns(columns))
		x, err := table.Encode(columns, train)
		require.NoError(t, err)
		y, err := table.Encode(columns, test)
		if err != nil {
			require.ErrorContains(t, err, "t.csv:")
		}
		for _, v := range append(x, y...) {
			require.False(t, math.IsNaN(float64(v)) || math.IsInf(float64(v), 0))
		}
	})
}
