package bench_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
)

// asMeasured returns a run with the published times of one program: three trials with
// their mean and sample standard deviation.
func asMeasured(times func(bench.Published) (mean, std float64)) bench.Scaling {
	s := bench.Scaling{Command: "ringtrain bench scaling", Date: "2026-11-20", Host: "here", Compute: "emulate:116.7ms", Where: "somewhere", Batch: 128, Params: 9, Steps: 1000}
	for _, p := range bench.PublishedScaling() {
		mean, std := times(p)
		for i, x := range []float64{mean - std, mean, mean + std} {
			s.Trials = append(s.Trials, bench.Trial{
				System: "allreduce", Workers: p.Workers, Trial: i + 1, Steps: 1000, Seconds: x,
				Split:    bench.Split{Compute: 100, Exchange: 2, Optimizer: 3, Evaluation: 4, Idle: 5},
				StepSent: 2048, Sent: []int64{10240, 20480}, Wire: []int64{10250, 20992}, Busy: .2 + .05*float64(p.Workers), Peak: min(1, .3+.05*float64(p.Workers)),
				Links: bench.Links(p.Workers, func(int, int) string { return "tcp" }),
			})
		}
	}
	return s
}

// A run with the published times of one program prints them, and their ratios, in
// aligned columns.
func TestScalingText(t *testing.T) {
	nccl := asMeasured(func(p bench.Published) (float64, float64) { return p.NCCL, p.NCCLStd })
	var out bytes.Buffer
	require.NoError(t, nccl.Text(&out))
	require.Equal(t, `date:     2026-11-20
host:     here
where:    somewhere
training: 1000 steps of 128 rows per worker, 9 parameters
compute:  emulate:116.7ms (workers wait instead of computing, and exchange the same bytes)
command:  ringtrain bench scaling

Time of all steps and of one, mean ± sample standard deviation of the trials.
growth T(N)/T(1) and speedup T(1)/T(N), ideally 1; scalability N*T(1)/T(N),
ideally N.

system     workers        seconds        ms/step  growth  speedup  scalability
allreduce        1  116.70 ± 2.51  116.70 ± 2.51    1.00     1.00         1.00
allreduce        2  171.10 ± 1.11  171.10 ± 1.11    1.47     0.68         1.36
allreduce        4  179.60 ± 2.91  179.60 ± 2.91    1.54     0.65         2.60
allreduce        8  205.80 ± 1.20  205.80 ± 1.20    1.76     0.57         4.54
allreduce       16  248.30 ± 3.63  248.30 ± 3.63    2.13     0.47         7.52

Where the time of a step goes, in ms.

system     workers    step  compute  exchange  optimizer  evaluation  idle
allreduce        1  116.70   100.00      2.00       3.00        4.00  5.00
allreduce        2  171.10   100.00      2.00       3.00        4.00  5.00
allreduce        4  179.60   100.00      2.00       3.00        4.00  5.00
allreduce        8  205.80   100.00      2.00       3.00        4.00  5.00
allreduce       16  248.30   100.00      2.00       3.00        4.00  5.00

What the busiest rank sends, in all and per step, and how busy the processors
of this machine were: on average, and in the busiest quarter of the time (peak).

system     workers  KiB/step  KiB sent  KiB on wire  differ by  CPU busy   peak
allreduce        1       2.0      20.0         20.5      2.5 %      25 %   35 %
allreduce        2       2.0      20.0         20.5      2.5 %      30 %   40 %
allreduce        4       2.0      20.0         20.5      2.5 %      40 %   50 %
allreduce        8       2.0      20.0         20.5      2.5 %      60 %   70 %
allreduce       16       2.0      20.0         20.5      2.5 %     100 %  100 %  core-bound

core-bound: at the peak, more than 85 % of the processors were busy, so they may have
decided the time.

- allreduce, 2 workers: 1 pair of ranks, each over tcp.
- allreduce, 4 workers: 6 pairs of ranks, each over tcp.
- allreduce, 8 workers: 28 pairs of ranks, each over tcp.
- allreduce, 16 workers: 120 pairs of ranks, each over tcp.
`, out.String())
}

// The share of used gradients is a column if some system has one.
func TestScalingUsed(t *testing.T) {
	var trials []bench.Trial
	for i, used := range []float64{90, 95.5} {
		trials = append(trials, bench.Trial{System: "ps-peers:2", Workers: 2, Trial: i + 1, Steps: 1, Seconds: 1, Used: used, Busy: -1})
	}
	s := bench.Scaling{Trials: append(trials, bench.Trial{System: "allreduce", Workers: 2, Trial: 1, Steps: 1, Seconds: 1, Busy: -1})}
	require.InDelta(t, 92.75, bench.ScalingRows(s.Trials)[1].Used, 1e-9)
	var out bytes.Buffer
	require.NoError(t, s.Text(&out))
	require.Contains(t, out.String(), `
system      workers  KiB/step  KiB sent  KiB on wire  differ by  CPU busy  peak  gradients used
allreduce         2       0.0       0.0
ps-peers:2        2       0.0       0.0                                                  92.8 %
`)
}

// On request, the published figures are in a table of their own, with the published
// ratios.
func TestPublishedScaling(t *testing.T) {
	s := asMeasured(func(p bench.Published) (float64, float64) { return p.Sharded, p.ShardedStd })
	s.Published, s.Compute = true, "real"
	var out bytes.Buffer
	require.NoError(t, s.Text(&out))
	require.Contains(t, out.String(), "compute:  real\n")
	require.Contains(t, out.String(), `
system          workers        seconds        ms/step  growth  speedup  scalability
spacy-ray             1    137.5 ± 2.1    137.5 ± 2.1    1.00     1.00         1.00
spacy-ray             2   354.1 ± 16.8   354.1 ± 16.8    2.58     0.39         0.78
spacy-ray             4   523.9 ± 10.4   523.9 ± 10.4    3.81     0.26         1.05
spacy-ray             8    710.1 ± 3.0    710.1 ± 3.0    5.16     0.19         1.55
spacy-ray            16  1296.1 ± 42.1  1296.1 ± 42.1    9.43     0.11         1.70
spacy-ray-nccl        1    116.7 ± 2.5    116.7 ± 2.5    1.00     1.00         1.00
spacy-ray-nccl        2    171.1 ± 1.1    171.1 ± 1.1    1.47     0.68         1.36
spacy-ray-nccl        4    179.6 ± 2.9    179.6 ± 2.9    1.54     0.65         2.60
spacy-ray-nccl        8    205.8 ± 1.2    205.8 ± 1.2    1.76     0.57         4.54
spacy-ray-nccl       16    248.3 ± 3.6    248.3 ± 3.6    2.13     0.47         7.52
`)
	require.Contains(t, out.String(), "allreduce        4   523.90 ± 10.40   523.90 ± 10.40    3.81     0.26         1.05\n")
}

func TestScalingMarkdown(t *testing.T) {
	nccl := asMeasured(func(p bench.Published) (float64, float64) { return p.NCCL, p.NCCLStd })
	var out bytes.Buffer
	require.NoError(t, nccl.Markdown(&out))
	require.Contains(t, out.String(), "- compute: emulate:116.7ms (workers wait")
	require.Contains(t, out.String(), `
| system    | workers |       seconds |       ms/step | growth | speedup | scalability |
| --------- | ------: | ------------: | ------------: | -----: | ------: | ----------: |
| allreduce |       1 | 116.70 ± 2.51 | 116.70 ± 2.51 |   1.00 |    1.00 |        1.00 |
`)
	require.NotContains(t, out.String(), "spacy-ray")

	out.Reset()
	alone := bench.Scaling{Trials: []bench.Trial{{System: "allreduce", Workers: 3, Steps: 10, Seconds: 1, Busy: -1}}}
	require.NoError(t, alone.Markdown(&out))
	require.Contains(t, out.String(), "\n| allreduce |       3 |    1.00 |  100.00 |        |         |             |\n", "nothing is made up for what nobody measured")
	require.Contains(t, out.String(), "\n| allreduce |       3 |      0.0 |      0.0 |             |           |          |      |  |\n")
	require.NotContains(t, out.String(), "core-bound")
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
	s.Trials = s.Trials[3:6] // growth is NaN now, which JSON does not have
	require.True(t, math.IsNaN(bench.ScalingRows(s.Trials)[0].Growth))
	require.NoError(t, s.WriteJSON(&out))
}

// Every plot is an image in both formats, whatever the measurements.
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
			require.Equal(t, 1200, image.Bounds().Dx())

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
			if name == "whole" {
				require.Contains(t, text, ">ideal<")
				require.Contains(t, text, ">allreduce<")
				require.NotContains(t, text, "spacy-ray")
				for _, workers := range []string{"1", "2", "4", "8", "16"} {
					require.Contains(t, text, ">"+workers+"<")
				}
			}
		}
	}
	whole.Published = true
	for _, plot := range bench.ScalingPlots() {
		var out bytes.Buffer
		require.NoError(t, whole.Plot(&out, "svg", plot))
		require.Contains(t, out.String(), ">spacy-ray-nccl (2021)<")
		require.Contains(t, out.String(), "#0072B2", "one colour for a system, in all plots")
		require.Contains(t, out.String(), "#009E73")
	}
	require.ErrorContains(t, whole.Plot(io.Discard, "png", "pie"), "not known")
	require.ErrorContains(t, bench.Scaling{}.Plot(io.Discard, "png", "runtime"), "no measurements to draw")
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

// A trial that bypassed the counted links is an error.
func TestCheckWire(t *testing.T) {
	trial := bench.Trial{Sent: []int64{1000, 1000}, Wire: []int64{1100, 951}, Links: []bench.Link{{0, "1", "tcp"}}}
	require.NoError(t, trial.CheckWire())
	trial.Wire[1] = 949
	require.ErrorContains(t, trial.CheckWire(), "rank 1 sent 1000 bytes, but its link carried only 949")
	trial.Wire[1] = 1000
	trial.Links[0].Transport = "shm"
	require.ErrorContains(t, trial.CheckWire(), "rank 0 reaches ranks 1 over shm")
}
