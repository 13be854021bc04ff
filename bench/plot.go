package bench

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// PlotFormat is the format that a file's name asks for: png or svg.
func PlotFormat(path string) (string, error) {
	format := strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
	if format != "png" && format != "svg" {
		return "", fmt.Errorf("%s: a plot is a file whose name ends in .png or .svg", path)
	}
	return format, nil
}

// Plot draws busbw over size as an image of 16 by 10 cm in a format of
// PlotFormat. The records are those of one run, one at least.
func Plot(w io.Writer, format string, records []Record) error {
	if len(records) == 0 {
		return fmt.Errorf("bench: nothing was measured that could be drawn")
	}
	first := records[0]
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s, %s, %d ranks, %s", first.Op, first.DType, first.Ranks, first.Transport)
	p.X.Label.Text, p.Y.Label.Text = "size (bytes)", "busbw (GB/s)"
	p.X.Tick.Marker = plot.TickerFunc(sizeTicks)
	p.Y.Min = 0
	points := make(plotter.XYs, len(records))
	for i, r := range records {
		points[i] = plotter.XY{X: math.Log2(float64(r.Size)), Y: r.BusBW}
	}
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return fmt.Errorf("bench: drawing: %w", err)
	}
	p.Add(plotter.NewGrid(), line, dots)
	if p.X.Max == p.X.Min { // one size alone
		p.X.Min, p.X.Max = p.X.Min-1, p.X.Max+1
	}
	if p.Y.Max <= 0 { // one rank alone
		p.Y.Max = 1
	}
	image, err := p.WriterTo(16*vg.Centimeter, 10*vg.Centimeter, format)
	if err != nil {
		return fmt.Errorf("bench: drawing: %w", err)
	}
	_, err = image.WriteTo(w)
	return err
}

// sizeTicks marks powers of two, as many as there is room for, on an axis of
// logarithms.
func sizeTicks(low, high float64) []plot.Tick {
	step := max(1, int(math.Ceil((high-low)/10)))
	var ticks []plot.Tick
	for e := int(math.Ceil(low)); float64(e) <= high; e += step {
		ticks = append(ticks, plot.Tick{Value: float64(e), Label: FormatSize(1 << max(e, 0))})
	}
	return ticks
}
