package bench

import (
	"errors"
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// A Chart has lines over a common axis that begins at 0.
type Chart struct {
	Title, X, Y string // the labels of the axes have the units
	Lines       []Line // at most as many as there are colours: 6
}

// A Line is a curve of a Chart. Points are in the order of X.
type Line struct {
	Name   string // in the legend
	Dashed bool
	X, Y   []float64
}

// lineColours are those of Okabe and Ito that are easy to see on white. Colour-blind
// readers can distinguish them.
var lineColours = [...]color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff},
	color.RGBA{0xcc, 0x79, 0xa7, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff},
}

// Plot draws the chart in a format of PlotFormat, 1200 dots wide.
func (c Chart) Plot(w io.Writer, format string) error {
	if len(c.Lines) == 0 {
		return errors.New("bench: there are no lines to draw")
	}
	if len(c.Lines) > len(lineColours) {
		return fmt.Errorf("bench: lines must be at most %d, not %d", len(lineColours), len(c.Lines))
	}
	p := newFigure(c.Title, c.X, c.Y)
	for i, l := range c.Lines {
		if len(l.X) == 0 || len(l.X) != len(l.Y) {
			return fmt.Errorf("bench: line %s has %d values of X and %d of Y", l.Name, len(l.X), len(l.Y))
		}
		points := make(plotter.XYs, len(l.X))
		for k := range points {
			points[k] = plotter.XY{X: l.X[k], Y: l.Y[k]}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return fmt.Errorf("bench: drawing %s: %w", l.Name, err)
		}
		line.Color, line.Width = lineColours[i], vg.Points(2)
		if l.Dashed {
			line.Dashes = []vg.Length{vg.Points(6), vg.Points(4)}
		}
		p.Add(line)
		p.Legend.Add(l.Name, line)
	}
	p.X.Min, p.Y.Min = 0, 0
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(niceTicks), plot.TickerFunc(niceTicks)
	return drawFigure(w, format, p, true)
}
