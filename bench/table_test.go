package bench_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"image/png"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective"
)

// rows are invented, one for each form of a row.
func rows() []bench.Row {
	return []bench.Row{
		{Op: "allreduce", DType: collective.Float32, Reduction: collective.Sum, Root: -1, Ranks: 4, Size: 4, Count: 1,
			Out: &bench.Timing{Iterations: 2000, Median: 6.5, P99: 54.13}, In: &bench.Timing{Iterations: 1179, Median: 6.25, Mean: 7.5, P99: 99.994, Read: 6.5}},
		{Op: "allreduce", DType: collective.Float64, Reduction: collective.Mean, Root: -1, Ranks: 4, Size: 1 << 20, Count: 1 << 17,
			Out: &bench.Timing{Iterations: 300, Median: 1234.5678, P99: 9999.9}, In: &bench.Timing{Iterations: 372, Median: 524.288, Mean: 530.5, P99: 600.71, Read: 541, Wrong: 3}},
		{Op: "broadcast", DType: collective.Uint8, Root: 1, Ranks: 4, Size: 1 << 26, Count: 1 << 26,
			Out: &bench.Timing{Iterations: 5, Median: 85567.8, P99: 90000, Wrong: -1}, In: &bench.Timing{Iterations: 5, Median: 67108.864, P99: 1e7, Wrong: -1}},
		{Op: "alltoall", DType: collective.Int64, Root: -1, Ranks: 4, Size: 64, Count: 2,
			Out: &bench.Timing{Iterations: 5, Median: 64, P99: 70}},
	}
}

func TestBandwidths(t *testing.T) {
	all := rows()
	require.InDelta(t, 2, all[1].AlgBW(all[1].In), 1e-12, "1 MiB in 524.288 us")
	require.InDelta(t, 3, all[1].BusBW(all[1].In), 1e-12, "allreduce of 4: 2*3/4")
	require.Zero(t, all[0].AlgBW(&bench.Timing{}))
	for op, want := range map[string]float64{
		"allreduce": 1.5, "allgather": .75, "reducescatter": .75, "alltoall": .75, "broadcast": 1, "sendrecv": 1,
		"reduce": 1, "gather": .75, "scatter": .75, "nosuch": 0,
	} {
		r := bench.Row{Op: op, Ranks: 4, Size: 1000}
		require.InDelta(t, want, r.BusBW(&bench.Timing{Median: 1}), 1e-12, op)
	}
	require.Same(t, all[0].In, all[0].Main())
	require.Same(t, all[3].Out, all[3].Main())
	require.EqualValues(t, 3, all[1].Wrong())
	require.Zero(t, all[2].Wrong())
}

// The table equals that of nccl-tests, to the blank.
func TestTable(t *testing.T) {
	var table bench.Table
	var out bytes.Buffer
	spec := bench.Spec{Op: "allreduce", Sizes: []int{4, 16, 64}, Warmup: 1, Check: true}
	require.NoError(t, table.Header(&out, spec, "tcp", []string{"vm1-7f3a/0", "vm1-7f3a/1"}))
	for _, r := range rows() {
		require.NoError(t, table.Row(&out, r))
	}
	require.NoError(t, table.Footer(&out))
	want, err := os.ReadFile("testdata/table.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())

	// Readers of nccl-tests' output rely on these.
	row := regexp.MustCompile(`^ +(\d+) +(\d+) +(\w+) +(\w+) +(-?\d+)( +[\d.]+ +[\d.]+ +[\d.]+ +\S+){1,2} `)
	for line := range strings.Lines(out.String()) {
		if line[0] != '#' {
			require.Regexp(t, row, line)
			require.Len(t, strings.Fields(line), 15)
		}
	}
	require.Regexp(t, `(?m)^# Out of bounds values : 3 FAILED$`, out.String())
	require.Regexp(t, `(?m)^# Avg bus bandwidth    : [\d.]+$`, out.String())
}

func TestFooter(t *testing.T) {
	for verdict, wrong := range map[string]int64{"0 OK": 0, "7 FAILED": 7, "0 NOT CHECKED": -1} {
		var table bench.Table
		var out bytes.Buffer
		r := rows()[0]
		r.In, r.Out = &bench.Timing{Median: 1, Wrong: wrong}, nil
		require.NoError(t, table.Row(&out, r))
		require.NoError(t, table.Footer(&out))
		require.Contains(t, out.String(), "# Out of bounds values : "+verdict+"\n")
	}
	var out bytes.Buffer
	require.NoError(t, new(bench.Table).Footer(&out))
	require.Contains(t, out.String(), "# Avg bus bandwidth    : 0\n")
}

func TestNames(t *testing.T) {
	for name, want := range map[string]collective.DType{
		"float": collective.Float32, "float32": collective.Float32, "double": collective.Float64, "float64": collective.Float64,
		"half": collective.Float16, "float16": collective.Float16, "bfloat16": collective.BFloat16, "int32": collective.Int32, "int64": collective.Int64, "uint8": collective.Uint8,
	} {
		got, err := bench.ParseType(name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := bench.ParseType("quarter")
	require.ErrorContains(t, err, `unknown type "quarter"; use float, double, half, bfloat16, int32`)
	for name, want := range map[string]collective.Op{
		"sum": collective.Sum, "avg": collective.Mean, "mean": collective.Mean, "min": collective.Min, "max": collective.Max, "prod": collective.Prod,
	} {
		got, err := bench.ParseReduction(name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = bench.ParseReduction("all")
	require.ErrorContains(t, err, `unknown reduction "all"`)
}

func TestRecords(t *testing.T) {
	records := bench.Records(rows(), "tcp")
	var out bytes.Buffer
	require.NoError(t, bench.WriteJSON(&out, records))
	var back []map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &back))
	require.Len(t, back, 4)
	require.Equal(t, map[string]any{
		"op": "allreduce", "dtype": "float64", "ranks": 4., "transport": "tcp", "size": 1048576., "time_us": 524.288, "mean_us": 530.5, "p99_us": 600.71, "read_us": 541.,
		"algbw": 2., "busbw": 3., "wrong": 3., "iterations": 372.,
	}, back[1])
	require.Nil(t, back[2]["wrong"])
	require.Equal(t, 64., back[3]["time_us"], "out of place where there is no other")

	out.Reset()
	require.NoError(t, bench.WriteCSV(&out, records))
	lines, err := csv.NewReader(&out).ReadAll()
	require.NoError(t, err)
	require.Len(t, lines, 5)
	for _, name := range lines[0] {
		require.Contains(t, back[0], name)
	}
	require.Equal(t, []string{"allreduce", "float64", "4", "tcp", "1048576", "524.288", "530.5", "600.71", "541", "2", "3", "3", "372"}, lines[2])
	require.Equal(t, "", lines[3][11])

	out.Reset()
	require.NoError(t, bench.WriteJSON(&out, bench.Records(nil, "tcp")))
	require.Equal(t, "[]\n", out.String())
}

func TestPlot(t *testing.T) {
	for path, want := range map[string]string{"x.png": "png", "dir.svg/y.PNG": "png", "x.svg": "svg"} {
		format, err := bench.PlotFormat(path)
		require.NoError(t, err)
		require.Equal(t, want, format)
	}
	for _, path := range []string{"x", "x.pdf", "png", ""} {
		_, err := bench.PlotFormat(path)
		require.ErrorContains(t, err, ".png or .svg")
	}
	all := bench.Records(rows(), "tcp")
	zero := all[:1:1]
	zero[0].BusBW = 0
	for _, records := range [][]bench.Record{all[1:3], all[1:2], zero} {
		var out bytes.Buffer
		require.NoError(t, bench.Plot(&out, "png", records))
		image, err := png.Decode(&out)
		require.NoError(t, err)
		require.Greater(t, image.Bounds().Dx(), image.Bounds().Dy())
	}
	var out bytes.Buffer
	require.NoError(t, bench.Plot(&out, "svg", all[1:3]))
	require.Contains(t, out.String(), "<svg")
	for _, text := range []string{"allreduce, float64, 4 ranks, tcp", "busbw (GB/s)", ">64M<"} {
		require.Contains(t, out.String(), text)
	}
	require.Error(t, bench.Plot(&out, "svg", nil))
}
