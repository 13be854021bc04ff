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

// asMeasured is a run that has the published times of one program: three trials
// of a mean and a sample standard deviation.
func asMeasured(times func(bench.Published) (mean, std float64)) bench.Scaling {
	s := bench.Scaling{Command: "ringtrain bench scaling", Date: "2026-11-20", Host: "here", Compute: "emulate:116.7ms", Where: "somewhere", Batch: 128, Params: 9, Steps: 1000}
	for _, p := range bench.PublishedScaling() {
		mean, std := times(p)
		for i, x := range []float64{mean - std, mean, mean + std} {
			s.Trials = append(s.Trials, bench.Trial{
				System: "allreduce", Workers: p.Workers, Trial: i + 1, Steps: 1000, Seconds: x,
				Split:    bench.Split{Compute: 100, Exchange: 2, Optimizer: 3, Evaluation: 4, Idle: 5},
				StepSent: 2048, Sent: []int64{10240, 20480}, Wire: []int64{10250, 20992}, Busy: .2 + .05*float64(p.Workers),
				Links: bench.Links(p.Workers, func(int, int) string { return "tcp" }),
			})
		}
	}
	return s
}

// The published times give the published ratios, and the growth and the
// scalability that the published plots show.
func TestPublishedScaling(t *testing.T) {
	want := []string{"1.18 1.00 1.00 1.00 1.00", "2.07 2.58 0.78 1.47 1.36", "2.92 3.81 1.05 1.54 2.60", "3.45 5.16 1.55 1.76 4.54", "5.22 9.43 1.70 2.13 7.52"}
	for i, p := range bench.PublishedScaling() {
		a, b := p.ShardedScaling()
		c, d := p.NCCLScaling()
		require.Equal(t, want[i], fmt.Sprintf("%.2f %.2f %.2f %.2f %.2f", p.Ratio(), a, b, c, d), "%d workers", p.Workers)
	}
}

// A run that measured the published times prints them, and what they come to.
func TestScalingTable(t *testing.T) {
	nccl := asMeasured(func(p bench.Published) (float64, float64) { return p.NCCL, p.NCCLStd })
	var out bytes.Buffer
	require.NoError(t, nccl.Markdown(&out))
	for _, line := range []string{
		"| 1 worker | 116.70 ± 2.51 | 116.70 ± 2.51 | 1.00x | 1.00 | 137.5 ± 2.1 | 116.7 ± 2.5 | 1.18x | 1.00x | 1.00 | 1.00 |",
		"| 2 workers | 171.10 ± 1.11 | 171.10 ± 1.11 | 1.47x | 1.36 | 354.1 ± 16.8 | 171.1 ± 1.1 | 2.07x | 1.47x | 0.78 | 1.36 |",
		"| 16 workers | 248.30 ± 3.63 | 248.30 ± 3.63 | 2.13x | 7.52 | 1296.1 ± 42.1 | 248.3 ± 3.6 | 5.22x | 2.13x | 1.70 | 7.52 |",
		"| 8 | 205.80 | 100.00 | 2.00 | 3.00 | 4.00 | 5.00 | 2.0 | 20.0 | 20.5 | 2.5 % | 60 % |  |",
		"| 16 | 248.30 | 100.00 | 2.00 | 3.00 | 4.00 | 5.00 | 2.0 | 20.0 | 20.5 | 2.5 % | 100 % | core-bound |",
		"Compute is emulated (emulate:116.7ms)",
		"allreduce, 2 workers: 1 pair of ranks, each over tcp.",
		"allreduce, 16 workers: 120 pairs of ranks, each over tcp.",
	} {
		require.Contains(t, out.String(), line)
	}
	require.Equal(t, 1, strings.Count(out.String(), "core-bound |"))

	out.Reset()
	sharded := asMeasured(func(p bench.Published) (float64, float64) { return p.Sharded, p.ShardedStd })
	sharded.Compute = "real"
	require.NoError(t, sharded.Markdown(&out))
	require.Contains(t, out.String(), "| 4 workers | 523.90 ± 10.40 | 523.90 ± 10.40 | 3.81x | 1.05 |")
	require.Contains(t, out.String(), "Compute is real.")

	out.Reset()
	alone := sharded
	alone.Trials = []bench.Trial{{System: "allreduce", Workers: 3, Steps: 10, Seconds: 1, Busy: -1}}
	require.NoError(t, alone.Markdown(&out))
	require.Contains(t, out.String(), "| 3 workers | 1.00 | 100.00 |  |  |  |  |  |  |  |  |", "nothing is made up for what nobody measured")
	require.Contains(t, out.String(), "| 0.00 | 0.0 | 0.0 |  |  |  |  |")
}

func TestScalingFiles(t *testing.T) {
	s := asMeasured(func(p bench.Published) (float64, float64) { return p.NCCL, p.NCCLStd })
	var out bytes.Buffer
	require.NoError(t, s.WriteCSV(&out))
	lines, err := csv.NewReader(&out).ReadAll()
	require.NoError(t, err, "every line has as many fields as the first")
	require.Len(t, lines, 6)
	require.Equal(t, "workers", lines[0][2])
	require.Equal(t, "16", lines[5][2])
	require.Equal(t, "true", lines[5][len(lines[5])-1])

	require.NoError(t, s.WriteJSON(&out))
	var back struct {
		Compute   string
		Trials    []bench.Trial
		Rows      []bench.ScalingRow
		Published []bench.Published
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &back))
	require.Equal(t, s.Trials, back.Trials)
	require.Equal(t, bench.ScalingRows(s.Trials), back.Rows)
	require.Equal(t, bench.PublishedScaling(), back.Published)
	require.Equal(t, s.Compute, back.Compute)

	out.Reset()
	s.Trials = s.Trials[3:6] // growth is not a number now, which JSON does not have
	require.True(t, math.IsNaN(bench.ScalingRows(s.Trials)[0].Growth))
	require.NoError(t, s.WriteJSON(&out))
}

// Every plot is an image in both formats, whatever was measured.
func TestScalingPlots(t *testing.T) {
	whole := asMeasured(func(p bench.Published) (float64, float64) { return p.NCCL / 50, p.NCCLStd / 50 })
	alone, other := whole, whole
	alone.Trials = whole.Trials[:1]
	other.Trials = []bench.Trial{{System: "allreduce", Workers: 3, Steps: 10, Seconds: 1}}
	for name, s := range map[string]bench.Scaling{"whole": whole, "one worker": alone, "no number that was published": other} {
		for _, plot := range bench.ScalingPlots() {
			var out bytes.Buffer
			require.NoError(t, s.Plot(&out, "png", plot), "%s %s", name, plot)
			image, err := png.Decode(&out)
			require.NoError(t, err)
			require.Greater(t, image.Bounds().Dx(), 400)

			out.Reset()
			require.NoError(t, s.Plot(&out, "svg", plot))
			text := out.String()
			for d := xml.NewDecoder(&out); ; {
				_, err := d.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
			}
			ideal := map[string]string{"runtime": "allreduce, ideal", "speedup": "no gain", "scalability": "ideal"}[plot]
			if name == "whole" {
				require.Contains(t, text, ">"+ideal+"<")
			}
		}
	}
	require.ErrorContains(t, whole.Plot(io.Discard, "png", "pie"), "not known")
	require.ErrorContains(t, bench.Scaling{}.Plot(io.Discard, "png", "runtime"), "nothing was measured")
}

func TestLinks(t *testing.T) {
	require.Equal(t, []bench.Link{}, bench.Links(1, nil), "JSON has an array of it, not null")
	require.Equal(t, []bench.Link{{0, "1-3", "tcp"}, {1, "2-3", "tcp"}, {2, "3", "tcp"}}, bench.Links(4, func(int, int) string { return "tcp" }))
	mixed := bench.Links(4, func(a, b int) string {
		if a == 0 && b == 2 {
			return "shm"
		}
		return "tcp"
	})
	require.Equal(t, []bench.Link{{0, "1,3", "tcp"}, {0, "2", "shm"}, {1, "2-3", "tcp"}, {2, "3", "tcp"}}, mixed)
	s := bench.Scaling{Trials: []bench.Trial{{System: "allreduce", Workers: 4, Steps: 1, Seconds: 1, Links: mixed}}}
	var out bytes.Buffer
	require.NoError(t, s.Markdown(&out))
	require.Contains(t, out.String(), "allreduce, 4 workers: 0 with 1,3 tcp; 0 with 2 shm; 1 with 2-3 tcp; 2 with 3 tcp.")
}

// What did not go over the links that are counted is no result.
func TestCheckWire(t *testing.T) {
	trial := bench.Trial{Sent: []int64{1000, 1000}, Wire: []int64{1100, 951}, Links: []bench.Link{{0, "1", "tcp"}}}
	require.NoError(t, trial.CheckWire())
	trial.Wire[1] = 949
	require.ErrorContains(t, trial.CheckWire(), "rank 1 sent 1000 bytes, of which its link carried 949")
	trial.Wire[1] = 1000
	trial.Links[0].Transport = "shm"
	require.ErrorContains(t, trial.CheckWire(), "rank 0 talks with 1 over shm")
}
