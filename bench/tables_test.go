package bench_test

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

var update = flag.Bool("update", false, "write the golden files in testdata")

// golden compares text with a file of testdata; with -update it writes the file.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "%s differs: if on purpose, go test ./bench -run '%s' -update, and read the diff", path, t.Name())
}

// edgeRows are rows at the edges of the columns: the shortest and longest times, the
// largest sizes, wrong results, no checks, and plans.
func edgeRows() []bench.Row {
	ring := schedule.Plan{Method: schedule.Ring, Segment: 65536, Streams: 4, Predicted: 1234567 * time.Nanosecond, Why: "large"}
	return []bench.Row{
		{Op: "allreduce", DType: collective.Float32, Reduction: collective.Sum, Root: -1, Ranks: 1, Size: 4, Count: 1,
			Out: &bench.Timing{Iterations: 1}, In: &bench.Timing{Iterations: 1}},
		{Op: "allreduce", DType: collective.Float16, Reduction: collective.Prod, Root: -1, Ranks: 2, Size: 2, Count: 1,
			Out:  &bench.Timing{Iterations: 2000, Median: .004, Mean: .0049, P99: .01, Read: .005, Wrong: -1},
			In:   &bench.Timing{Iterations: 2000, Median: .005, Mean: .0049, P99: 99.994, Wrong: -1},
			Plan: schedule.Plan{Method: schedule.OneShot, Segment: 4096, Streams: 1, Predicted: time.Nanosecond, Why: "small: one message"}},
		{Op: "allreduce", DType: collective.BFloat16, Reduction: collective.Mean, Root: -1, Ranks: 1000, Size: 1 << 40, Count: 1 << 39,
			Out:  &bench.Timing{Iterations: 5, Median: 3.6e9, Mean: 3.6e9, P99: 7.2e9, Wrong: 1 << 39},
			In:   &bench.Timing{Iterations: 1_000_000, Median: 99.995, Mean: 100, P99: 9999.96, Wrong: 99999},
			Plan: ring},
		{Op: "reducescatter", DType: collective.Int32, Reduction: collective.Min, Root: -1, Ranks: 3, Size: 999_999_999_996, Count: 83_333_333_333,
			Out: &bench.Timing{Iterations: 7, Median: 10_000, P99: 9_999.4, Wrong: 100_000}, In: &bench.Timing{Iterations: 7, Median: 99.994, P99: 100, Wrong: 1}},
		{Op: "broadcast", DType: collective.Uint8, Root: 0, Ranks: 3, Size: 1, Count: 1,
			Out: &bench.Timing{Iterations: 3, Median: 1, P99: 1}, In: &bench.Timing{Iterations: 3, Median: 1, P99: 1}},
		{Op: "sendrecv", DType: collective.Int64, Root: -1, Ranks: 3, Size: 8, Count: 1, Out: &bench.Timing{Iterations: 3, Median: 8, P99: 9, Wrong: 3}},
	}
}

// The table of rows at the edges of its columns. A number too long for its column moves
// the rest of the line, but is never cut, and every line keeps its fields.
func TestTableOfEdges(t *testing.T) {
	var table bench.Table
	var out bytes.Buffer
	require.NoError(t, table.Header(&out, bench.Spec{Op: "allreduce", Sizes: []int{1 << 40}, Iterations: 20, Check: true}, "shm", []string{"a/0", "b/0"}))
	for _, r := range edgeRows() {
		require.NoError(t, table.Row(&out, r))
	}
	require.NoError(t, table.Footer(&out))
	golden(t, "edges.txt", out.String())
	for line := range strings.Lines(out.String()) {
		if line[0] != '#' {
			require.Len(t, strings.Fields(line), 15, line)
		}
	}
}

// The lines of the settings, for every kind of sweep.
func TestHeaders(t *testing.T) {
	for _, c := range []struct {
		name string
		spec bench.Spec
		want string
	}{
		{"no sizes", bench.Spec{}, "# minBytes 0 maxBytes 0 step: 1(factor) warmup iters: 0 iters: adaptive validation: 0"},
		{"one size", bench.Spec{Sizes: []int{64}, Warmup: 5}, "# minBytes 64 maxBytes 64 step: 1(factor) warmup iters: 5 iters: adaptive validation: 0"},
		{"a sweep", bench.Spec{Sizes: []int{8, 32, 128}, Iterations: 20, Check: true}, "# minBytes 8 maxBytes 128 step: 4(factor) warmup iters: 0 iters: 20 validation: 1"},
		{"a time", bench.Spec{Sizes: []int{8}, Time: 1500 * time.Millisecond}, "# minBytes 8 maxBytes 8 step: 1(factor) warmup iters: 0 iters: as many as take 1.5s validation: 0"},
		{"iterations and a time", bench.Spec{Sizes: []int{8}, Iterations: 3, Time: time.Second}, "# minBytes 8 maxBytes 8 step: 1(factor) warmup iters: 0 iters: 3 validation: 0"},
		{"a size of nothing", bench.Spec{Sizes: []int{0, 8}}, "# minBytes 0 maxBytes 8 step: 1(factor) warmup iters: 0 iters: adaptive validation: 0"},
	} {
		var out bytes.Buffer
		c.spec.Op = "alltoall"
		require.NoError(t, new(bench.Table).Header(&out, c.spec, "tcp", []string{"vm/0"}))
		lines := strings.Split(out.String(), "\n")
		require.Equal(t, "# ringtrain bench collective alltoall transport tcp ranks 1", lines[0], c.name)
		require.Equal(t, c.want, lines[1], c.name)
	}
	var out bytes.Buffer
	require.NoError(t, new(bench.Table).Header(&out, bench.Spec{}, "tcp", make([]string, 101)))
	require.Contains(t, out.String(), "#  Rank  9 on \n#  Rank 10 on \n", "ranks are aligned")
	require.Contains(t, out.String(), "#  Rank 100 on \n")
}

// The names of the columns stand over the numbers: each name of a column ends where its
// number ends, in every row of usual length.
func TestTableIsAligned(t *testing.T) {
	var table bench.Table
	var head, body bytes.Buffer
	require.NoError(t, table.Header(&head, bench.Spec{}, "tcp", nil))
	lines := strings.Split(strings.TrimRight(head.String(), "\n"), "\n")
	names := ends(lines[len(lines)-2])
	names = names[1:] // of the #
	require.Len(t, names, 15)
	for _, r := range rows() {
		body.Reset()
		require.NoError(t, table.Row(&body, r))
		line := strings.TrimRight(body.String(), "\n")
		if r.Main().P99 >= 1e7 {
			continue // longer than its column
		}
		for i, end := range ends(line) {
			require.Equal(t, names[i], end, "column %d of %s", i, line)
		}
	}
}

// ends returns the columns at which the fields of a line end.
func ends(line string) (at []int) {
	for i := range line {
		if line[i] != ' ' && (i+1 == len(line) || line[i+1] == ' ') {
			at = append(at, i+1)
		}
	}
	return at
}

// The mean of busbw is over all timings, and one wrong element in any row fails the
// whole table.
func TestFooterCountsAllRows(t *testing.T) {
	row := func(busbw float64, out, in int64) bench.Row {
		r := bench.Row{Op: "broadcast", DType: collective.Uint8, Ranks: 2, Size: int(busbw * 1e3), Out: &bench.Timing{Median: 1, Wrong: out}}
		if in >= -1 {
			r.In = &bench.Timing{Median: 1, Wrong: in}
		}
		return r
	}
	const none = -2
	for _, c := range []struct {
		name string
		rows []bench.Row
		want string
	}{
		{"all correct", []bench.Row{row(1, 0, 0), row(4, 0, 0)}, "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 2.5\n#\n"},
		{"out of place only", []bench.Row{row(1, 0, 0), row(4, 0, none)}, "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 2\n#\n"},
		{"wrong first", []bench.Row{row(1, 1, 0), row(1, 0, 0)}, "# Out of bounds values : 1 FAILED\n# Avg bus bandwidth    : 1\n#\n"},
		{"wrong in both placements", []bench.Row{row(1, 2, 3), row(1, 0, 4)}, "# Out of bounds values : 9 FAILED\n# Avg bus bandwidth    : 1\n#\n"},
		{"not checked", []bench.Row{row(2, -1, -1)}, "# Out of bounds values : 0 NOT CHECKED\n# Avg bus bandwidth    : 2\n#\n"},
		{"six digits", []bench.Row{row(1, 0, 0), row(1, 0, none), row(1234.567, 0, none)}, "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 309.392\n#\n"},
	} {
		var table bench.Table
		var out bytes.Buffer
		for _, r := range c.rows {
			require.NoError(t, table.Row(io.Discard, r))
		}
		require.NoError(t, table.Footer(&out))
		require.Equal(t, c.want, out.String(), c.name)
	}
}

// Programs get full precision, whatever the table rounds.
func TestRecordsOfEdges(t *testing.T) {
	records := bench.Records(edgeRows(), "shm")
	var out bytes.Buffer
	require.NoError(t, bench.WriteCSV(&out, records))
	golden(t, "edges.csv", out.String())
	out.Reset()
	require.NoError(t, bench.WriteJSON(&out, records))
	golden(t, "edges.json", out.String())
	out.Reset()
	require.NoError(t, bench.WriteCSV(&out, nil))
	require.Equal(t, "op,dtype,ranks,transport,size,time_us,mean_us,p99_us,read_us,algbw,busbw,wrong,iterations\n", out.String(), "no rows")
}

// A writer that fails is an error of every format.
func TestWritersThatFail(t *testing.T) {
	full := failing{}
	var table bench.Table
	require.ErrorIs(t, table.Header(full, bench.Spec{}, "tcp", nil), errFull)
	require.ErrorIs(t, table.Row(full, rows()[0]), errFull)
	require.ErrorIs(t, table.Footer(full), errFull)
	records := bench.Records(rows(), "tcp")
	require.ErrorIs(t, bench.WriteCSV(full, records), errFull)
	require.ErrorIs(t, bench.WriteJSON(full, records), errFull)
	require.ErrorIs(t, bench.Plot(full, "svg", records[1:3]), errFull)
	require.ErrorIs(t, bench.Plot(full, "png", records[1:3]), errFull)
	s := asMeasured(func(p bench.Published) (float64, float64) { return p.NCCL, p.NCCLStd })
	for name, write := range map[string]func(io.Writer) error{"text": s.Text, "markdown": s.Markdown, "csv": s.WriteCSV, "json": s.WriteJSON} {
		require.ErrorIs(t, write(full), errFull, name)
	}
	path := filepath.Join(t.TempDir(), "x")
	require.ErrorIs(t, bench.WriteTo(path, func(io.Writer) error { return errFull }), errFull)
	require.NoError(t, bench.WriteTo("", func(io.Writer) error { return errFull }), "no file, nothing to write")
	require.Error(t, bench.WriteTo(filepath.Join(path, "below a file"), func(io.Writer) error { return nil }))
	require.NoError(t, bench.WriteTo(path, func(w io.Writer) error { _, err := io.WriteString(w, "table"); return err }))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "table", string(text))
}

// failing is a disk that is full.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

const errFull = full("the disk is full")

type full string

func (e full) Error() string { return string(e) }
