package bench_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
)

// odd are names that would break a table, a file or a drawing that takes them as they are.
var odd = []string{
	strings.Repeat("long", 300),
	`a,b "c" <d> & 'e'`,
	"two\nlines",
	"größer als ≥ 1 GB/s",
	"",
}

// Every reader gets back the names that the writers were given, however odd.
func TestRecordsWithOddNames(t *testing.T) {
	for _, name := range odd {
		records := []bench.Record{{Op: name, DType: "float32", Ranks: 2, Transport: name, Size: 4, Time: 1, BusBW: 1, Why: name, Algorithm: "ring"}}
		var out bytes.Buffer
		require.NoError(t, bench.WriteJSON(&out, records))
		var back []bench.Record
		require.NoError(t, json.Unmarshal(out.Bytes(), &back))
		require.Equal(t, records, back)

		out.Reset()
		require.NoError(t, bench.WriteCSV(&out, records))
		lines, err := csv.NewReader(&out).ReadAll()
		require.NoError(t, err)
		require.Len(t, lines, 2)
		require.Equal(t, []string{name, name}, []string{lines[1][0], lines[1][3]})

		out.Reset()
		require.NoError(t, bench.Plot(&out, "svg", records))
		well(t, out.Bytes())
		out.Reset()
		require.NoError(t, bench.Plot(&out, "png", records))
		image, err := png.Decode(&out)
		require.NoError(t, err)
		require.Equal(t, 1200, image.Bounds().Dx(), "a long title does not widen the image")
	}
}

// well fails the test unless text is well-formed XML.
func well(t *testing.T, text []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

// A report of commands and hosts with odd names has its tables unharmed, and its files can
// be read.
func TestScalingWithOddNames(t *testing.T) {
	for _, name := range odd {
		s := bench.Scaling{Command: name, Host: name, Where: name, Date: name, Compute: name, Steps: 1, Batch: 1, Params: 1, Trials: handRun()}
		var text, json, markdown bytes.Buffer
		require.NoError(t, s.Text(&text))
		require.Contains(t, text.String(), "\nallreduce        4  4.00 ± 1.41", "%q", name)
		require.NoError(t, s.Markdown(&markdown))
		require.Contains(t, markdown.String(), "\n| allreduce |       4 |", "%q", name)
		require.NoError(t, s.WriteJSON(&json))
		back := read(t, json.Bytes())
		require.Equal(t, []string{name, name, name}, []string{back.Command, back.Host, back.Compute})
		for _, plot := range bench.ScalingPlots() {
			var out bytes.Buffer
			require.NoError(t, s.Plot(&out, "svg", plot))
			well(t, out.Bytes())
		}
	}
}

func read(t *testing.T, text []byte) (s bench.Scaling) {
	t.Helper()
	require.NoError(t, json.Unmarshal(text, &s))
	return s
}

// Systems of a later version, whose files an older program may read, keep their names in
// all tables. Long ones widen their column and leave the others aligned.
func TestScalingOfUnknownSystems(t *testing.T) {
	trials := handRun()
	long := strings.Repeat("x", 200)
	for i := range trials {
		trials[i].System = []string{"gossip", long}[i%2]
		trials[i].Links = bench.Links(trials[i].Workers, func(int, int) string { return "quic" })
	}
	s := bench.Scaling{Compute: "real", Trials: trials}
	var out bytes.Buffer
	require.NoError(t, s.Text(&out))
	require.Equal(t, 3, strings.Count(out.String(), "\n"+long+"        1"), "in each of the three tables")
	require.Contains(t, out.String(), "- gossip, 4 workers: 6 pairs of ranks, each over quic.\n")
	widths := map[int]bool{}
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "seconds") || strings.Contains(line, "±") && strings.Contains(line, "100.00") {
			widths[len([]rune(strings.TrimRight(line, "\n")))] = true
		}
	}
	require.LessOrEqual(t, len(widths), 3)
	for _, name := range bench.ScalingPlots() {
		require.NoError(t, s.Plot(io.Discard, "svg", name))
	}
}

// Measurements that are no numbers, as of a clock that stands still or a file that was
// edited, are left out of plots. Nothing panics.
func TestScalingOfNoNumbers(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), -1, 0} {
		trials := handRun()
		trials[0].Seconds = x
		s := bench.Scaling{Compute: "real", Trials: trials}
		for _, name := range bench.ScalingPlots() {
			var out bytes.Buffer
			require.NoError(t, s.Plot(&out, "svg", name), "%v %s", x, name)
			well(t, out.Bytes())
			require.NotContains(t, out.String(), "NaN", "%v %s", x, name)
			require.NotContains(t, out.String(), "Inf", "%v %s", x, name)
		}
		require.NoError(t, s.Text(io.Discard))
		var out bytes.Buffer
		require.NoError(t, s.WriteCSV(&out))
		lines, err := csv.NewReader(&out).ReadAll()
		require.NoError(t, err)
		require.Len(t, lines, 3)
	}
}

// A plot of busbw leaves out nothing: what cannot be drawn is an error that says so.
func TestPlotsOfNoNumbers(t *testing.T) {
	fine := bench.Record{Op: "allreduce", Size: 1024, BusBW: 3}
	for _, busbw := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		err := bench.Plot(io.Discard, "png", []bench.Record{fine, {Size: 4096, BusBW: busbw}})
		require.ErrorContains(t, err, "bench: drawing: ", "%v", busbw)
	}
	for _, size := range []int{1, math.MaxInt} {
		var out bytes.Buffer
		require.NoError(t, bench.Plot(&out, "svg", []bench.Record{{Size: size, BusBW: 1e-300}}), "one point, of %d bytes", size)
		well(t, out.Bytes())
		require.Contains(t, out.String(), ">busbw (GB/s)<")
	}
	require.Contains(t, fmt.Sprint(bench.Plot(io.Discard, "pdf2", []bench.Record{fine})), "pdf2")
}
