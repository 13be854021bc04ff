package bench

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

// PlotFormat returns the format for a file's name: png or svg.
func PlotFormat(path string) (string, error) {
	format := strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
	if format != "png" && format != "svg" {
		return "", fmt.Errorf("%s: the name of a plot must end in .png or .svg", path)
	}
	return format, nil
}

// Plot draws busbw over size in a format of PlotFormat, 1200 dots wide. records has at
// least one record, all of one run.
func Plot(w io.Writer, format string, records []Record) error {
	if len(records) == 0 {
		return fmt.Errorf("bench: there are no measurements to draw")
	}
	first := records[0]
	p := newFigure(fmt.Sprintf("%s, %s, %d ranks, %s", first.Op, first.DType, first.Ranks, first.Transport), "size (bytes)", "busbw (GB/s)")
	var c curve
	for _, r := range records {
		c.XYs = append(c.XYs, plotter.XY{X: math.Log2(float64(r.Size)), Y: r.BusBW})
		c.YErrors = append(c.YErrors, struct{ Low, High float64 }{})
	}
	c.system = Systems()[0]
	if err := c.draw(p); err != nil {
		return fmt.Errorf("bench: drawing: %w", err)
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(sizeTicks), plot.TickerFunc(niceTicks)
	p.X.Min, p.X.Max = p.X.Min-.5, p.X.Max+.5
	p.Y.Min, p.Y.Max = 0, p.Y.Max*1.08
	if p.Y.Max <= 0 { // only one rank
		p.Y.Max = 1
	}
	return drawFigure(w, format, p, false)
}

// sizeTicks marks powers of two on a logarithmic axis, as many as there is room for.
func sizeTicks(low, high float64) []plot.Tick {
	step := max(1, int(math.Ceil((high-low)/10)))
	var ticks []plot.Tick
	for e := int(math.Ceil(low)); float64(e) <= high; e += step {
		ticks = append(ticks, plot.Tick{Value: float64(e), Label: FormatSize(1 << max(e, 0))})
	}
	return ticks
}
