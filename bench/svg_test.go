package bench_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
)

// A drawing has the visible parts of an SVG, without coordinates.
type drawing struct {
	texts  []string
	curves map[string]int // lines through several points, by colour
}

// colours of curves in all plots.
const (
	blue  = "#0072B2" // ringtrain
	red   = "#D55E00" // spacy-ray
	green = "#009E73" // spacy-ray-nccl
	grey  = "#606060" // ideal
)

// drawn draws and reads an SVG.
func drawn(t *testing.T, draw func(io.Writer) error) drawing {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, draw(&out))
	d := drawing{curves: map[string]int{}}
	colour := regexp.MustCompile(`stroke:(#[0-9A-Fa-f]{6})`)
	decoder := xml.NewDecoder(&out)
	for text := false; ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return d
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			text = token.Name.Local == "text"
			points, style := "", ""
			for _, a := range token.Attr {
				switch a.Name.Local {
				case "d":
					points = a.Value
				case "style":
					style = a.Value
				}
			}
			if c := colour.FindStringSubmatch(style); token.Name.Local == "path" && c != nil && strings.Count(points, "L") >= 2 {
				d.curves[strings.ToUpper(c[1])]++
			}
		case xml.CharData:
			if text {
				d.texts = append(d.texts, string(token))
			}
		case xml.EndElement:
			text = false
		}
	}
}

// The titles, axes, legends, ticks and curves of the plots of a scaling run.
func TestScalingPlotsShow(t *testing.T) {
	nccl := func(p bench.Published) (float64, float64) { return p.NCCL, p.NCCLStd }
	ours := map[string]int{blue: 1}
	for _, c := range []struct {
		plot      string
		published bool
		compute   string
		texts     []string
		legend    []string
	}{
		{"runtime", false, "real", []string{"Time of a step", "workers", "ms per step", "0", "50", "100", "150", "200", "250"}, []string{"allreduce", "ideal"}},
		{"speedup", false, "emulate:100ms", []string{"Speedup (compute emulated, 100ms per step)", "workers", "T(1)/T(N)", "0", "0.2", "0.4", "0.6", "0.8", "1"}, []string{"allreduce", "ideal"}},
		{"scalability", false, "real", []string{"Scalability", "workers", "N*T(1)/T(N)"}, []string{"allreduce", "ideal"}},
		{"runtime", true, "real", []string{"ms per step", "100", "200", "500", "1000"}, []string{"allreduce", "spacy-ray (2021)", "spacy-ray-nccl (2021)", "ideal"}},
		{"scalability", true, "real", nil, []string{"allreduce", "spacy-ray (2021)", "spacy-ray-nccl (2021)", "ideal"}},
	} {
		s := asMeasured(nccl)
		s.Compute, s.Published = c.compute, c.published
		d := drawn(t, func(w io.Writer) error { return s.Plot(w, "svg", c.plot) })
		for _, text := range append(c.texts, "1", "2", "4", "8", "16") {
			require.Contains(t, d.texts, text, c.plot)
		}
		var legend []string
		for _, text := range d.texts {
			if text == "ideal" || strings.HasPrefix(text, "spacy") || text == "allreduce" {
				legend = append(legend, text)
			}
		}
		require.Equal(t, c.legend, legend, c.plot)
		for colour, least := range ours {
			require.GreaterOrEqual(t, d.curves[colour], least, "%s: the curve of allreduce", c.plot)
		}
		require.Positive(t, d.curves[grey], "%s: the ideal", c.plot)
		require.Equal(t, c.published, d.curves[red] > 0, "%s: spacy-ray", c.plot)
		require.Equal(t, c.published, d.curves[green] > 0, "%s: spacy-ray-nccl", c.plot)
	}
}

// Published figures are drawn only for numbers of workers that were measured, and the
// ideal only if there is a time with one worker.
func TestScalingPlotsLeaveOut(t *testing.T) {
	trial := func(workers int, seconds float64) bench.Trial {
		return bench.Trial{System: "allreduce", Workers: workers, Steps: 10, Seconds: seconds}
	}
	for _, c := range []struct {
		name   string
		plot   string
		trials []bench.Trial
		shown  []string
		hidden []string
	}{
		{"no published figures for these numbers of workers", "runtime", []bench.Trial{trial(1, 1), trial(3, 2)}, []string{"allreduce", "ideal", "3", "spacy-ray (2021)"}, []string{"2", "16"}},
		{"none that was published", "runtime", []bench.Trial{trial(3, 1), trial(5, 2)}, []string{"allreduce", "3", "5"}, []string{"ideal", "spacy-ray (2021)"}},
		{"the ideal of scalability needs no measurement", "scalability", []bench.Trial{trial(1, 1), trial(6, 2)}, []string{"allreduce", "ideal", "6"}, nil},
	} {
		s := bench.Scaling{Compute: "real", Published: true, Trials: c.trials}
		d := drawn(t, func(w io.Writer) error { return s.Plot(w, "svg", c.plot) })
		for _, text := range c.shown {
			require.Contains(t, d.texts, text, c.name)
		}
		for _, text := range c.hidden {
			require.NotContains(t, d.texts, text, c.name)
		}
	}
	nothing := bench.Scaling{Compute: "real", Trials: []bench.Trial{trial(1, 0)}}
	for _, plot := range bench.ScalingPlots() {
		err := nothing.Plot(io.Discard, "svg", plot)
		if plot != "runtime" { // the ideals of ratios need no measurement
			require.NoError(t, err, plot)
			continue
		}
		require.EqualError(t, err, "bench: there are no measurements to draw")
	}
}

// A plot of busbw has one curve, sizes as ticks, and no legend.
func TestBusBWPlotShows(t *testing.T) {
	var records []bench.Record
	for i := range 9 {
		records = append(records, bench.Record{Op: "allgather", DType: "int32", Ranks: 5, Transport: "shm", Size: 1 << (2 * i), BusBW: float64(i)})
	}
	d := drawn(t, func(w io.Writer) error { return bench.Plot(w, "svg", records) })
	require.Equal(t, map[string]int{blue: 1}, only(d.curves, blue, red, green, grey))
	for _, text := range []string{"allgather, int32, 5 ranks, shm", "size (bytes)", "busbw (GB/s)", "1", "4", "1K", "64K", "0", "2", "8"} {
		require.Contains(t, d.texts, text)
	}
	require.NotContains(t, d.texts, "allreduce", "a single curve needs no legend")

	for i := range records {
		records[i].Ranks, records[i].BusBW = 1, 0
	}
	d = drawn(t, func(w io.Writer) error { return bench.Plot(w, "svg", records) })
	require.Contains(t, d.texts, "0.2", "an axis from 0 to 1, although all figures are 0")
	require.Error(t, bench.Plot(io.Discard, "svg", []bench.Record{{Size: 0, BusBW: 1}}), "a logarithmic axis cannot show a size of 0")
	require.Error(t, bench.Plot(io.Discard, "pie", records))
}

func only(curves map[string]int, colours ...string) map[string]int {
	kept := map[string]int{}
	for c, n := range curves {
		if slices.Contains(colours, c) {
			kept[c] = n
		}
	}
	return kept
}
